"""Durable background work: leased `operations` and the one loop that runs them."""

from roost.work.claim import Claim, Handler
from roost.work.errors import LeaseLost, OperationMissing
from roost.work.loop import Work
from roost.work.model import JSON, Operation, State
from roost.work.store import add, amend, busy, get, waiting

__all__ = [
    "JSON",
    "Claim",
    "Handler",
    "LeaseLost",
    "Operation",
    "OperationMissing",
    "State",
    "Work",
    "add",
    "amend",
    "busy",
    "get",
    "waiting",
]
