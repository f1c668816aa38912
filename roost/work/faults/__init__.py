"""Faults: operations that keep failing."""

from roost.work.faults.store import (
    OperationFault,
    clear_fault,
    count_faults,
    find_fault,
    forget_faults,
    list_faults,
    record_fault,
    sweep_faults,
)

__all__ = [
    "OperationFault",
    "clear_fault",
    "count_faults",
    "find_fault",
    "forget_faults",
    "list_faults",
    "record_fault",
    "sweep_faults",
]
