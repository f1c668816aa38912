"""What an operation is: one durable row of background work, and the rules of time about it."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

JSON = Any

LEASE_SECONDS = 15.0
KEPT = timedelta(days=7)
"""How long a finished operation can be looked up."""

_FIRST_RETRY = timedelta(seconds=1)
_LONGEST_RETRY = timedelta(minutes=5)


class OperationState(StrEnum):
    PENDING = "pending"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True)
class Operation:
    """Work of a `kind` on a `subject` (`agent/<id>`): operations of one subject run one at a time, oldest first.

    attempts: how often it was begun; also the fencing token, because what an earlier attempt writes is refused.
    failures: how many attempts ended in an error; one that was cut off (crash, restart, lost lease) does not count.
    error: `{"kind": ..., "message": ...}` of the last failure, also while it waits for its next try.
    """

    id: str
    kind: str
    subject: str
    payload: JSON
    state: OperationState
    attempts: int
    failures: int
    lease_owner: str | None
    lease_until: datetime | None
    run_after: datetime
    result: JSON
    error: JSON
    created_at: datetime
    finished_at: datetime | None

    @property
    def finished(self) -> bool:
        return self.state in {OperationState.DONE, OperationState.FAILED}


def backoff(failures: int) -> timedelta:
    """How long to wait after so many failures: 1 s, 2 s, 4 s ... 5 min."""
    return min(_FIRST_RETRY * 2 ** min(failures - 1, 20), _LONGEST_RETRY)
