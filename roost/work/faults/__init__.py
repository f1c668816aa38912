"""Faults: operations that keep failing."""

from roost.work.faults.store import OperationFault as OperationFault
from roost.work.faults.store import clear_fault as clear_fault
from roost.work.faults.store import count_faults as count_faults
from roost.work.faults.store import find_fault as find_fault
from roost.work.faults.store import forget_faults as forget_faults
from roost.work.faults.store import list_faults as list_faults
from roost.work.faults.store import record_fault as record_fault
from roost.work.faults.store import sweep_faults as sweep_faults
