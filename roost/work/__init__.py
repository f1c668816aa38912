"""Durable background work: leased `operations` and the one loop that runs them."""

from roost.work.claim import ClaimedOperation, Handler, Settlement
from roost.work.model import JSON, LeaseLost, Operation, OperationLimits, OperationNotFound, OperationState
from roost.work.store import (
    abandon_operations,
    add_operation,
    count_operations,
    count_unfinished,
    discard_operation,
    discard_waiting,
    find_last_unfinished,
    finish_operation,
    get_operation,
    hasten_operations,
    is_subject_busy,
    list_busy_subjects,
    list_waiting_operations,
    pause_operations,
    postpone_operation,
    resume_operations,
    update_payload,
)
from roost.work.worker import OperationWorker

__all__ = [
    "JSON",
    "ClaimedOperation",
    "Handler",
    "LeaseLost",
    "Operation",
    "OperationLimits",
    "OperationNotFound",
    "OperationState",
    "OperationWorker",
    "Settlement",
    "abandon_operations",
    "add_operation",
    "count_operations",
    "count_unfinished",
    "discard_operation",
    "discard_waiting",
    "find_last_unfinished",
    "finish_operation",
    "get_operation",
    "hasten_operations",
    "is_subject_busy",
    "list_busy_subjects",
    "list_waiting_operations",
    "pause_operations",
    "postpone_operation",
    "resume_operations",
    "update_payload",
]
