"""Durable background work: leased `operations` and the one loop that runs them."""

from roost.work.claim import ClaimedOperation, Handler
from roost.work.errors import LeaseLost, OperationNotFound
from roost.work.model import JSON, Operation, OperationState
from roost.work.store import add, amend, busy, get, waiting
from roost.work.worker import OperationWorker

__all__ = [
    "JSON",
    "ClaimedOperation",
    "Handler",
    "LeaseLost",
    "Operation",
    "OperationNotFound",
    "OperationState",
    "OperationWorker",
    "add",
    "amend",
    "busy",
    "get",
    "waiting",
]
