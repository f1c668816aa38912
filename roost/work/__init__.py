"""Durable background work: leased `operations` and the one loop that runs them."""

from roost.work.claim import ClaimedOperation, Handler, Settlement
from roost.work.errors import LeaseLost, OperationNotFound
from roost.work.model import JSON, Operation, OperationLimits, OperationState
from roost.work.store import (
    add,
    amend,
    busy,
    count,
    discard,
    discard_waiting,
    finish,
    get,
    pause,
    postpone,
    resume,
    waiting,
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
    "add",
    "amend",
    "busy",
    "count",
    "discard",
    "discard_waiting",
    "finish",
    "get",
    "pause",
    "postpone",
    "resume",
    "waiting",
]
