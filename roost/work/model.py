"""The operation: one durable row of background work, and the rules of time and number about it."""

from collections import Counter
from collections.abc import Iterable
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
    PAUSED = "paused"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True)
class Operation:
    """Work of a `kind` on a `subject` (`agent/<id>`).

    tenant_id: None for ordered work, where operations of one subject run one at a time, oldest first. Operations of a
    tenant run in any order, as many at once as the `OperationLimits` of their kind allow.
    attempts: how often it was begun; also the fencing token, because writes of an earlier attempt are refused.
    failures: how many attempts ended in an error; one that was cut off (crash, restart, lost lease) does not count.
    error: `{"kind": ..., "message": ...}` of the last failure, also while it waits for its next try.
    """

    id: str
    kind: str
    subject: str
    tenant_id: str | None
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


@dataclass(frozen=True)
class OperationLimits:
    """How many operations of a kind one process runs at once: in total, of one tenant, and of one subject."""

    total: int
    per_tenant: int
    per_subject: int


class FreeSlots:
    """Slots that the running operations of a kind leave free under its limits."""

    def __init__(self, limits: OperationLimits, running: Iterable[Operation]) -> None:
        self._limits = limits
        self._total = 0
        self._tenants = Counter[str | None]()
        self._subjects = Counter[str]()
        for operation in running:
            self.occupy(operation)

    def occupy(self, operation: Operation) -> None:
        self._total += 1
        self._tenants[operation.tenant_id] += 1
        self._subjects[operation.subject] += 1

    @property
    def total(self) -> int:
        return self._limits.total - self._total

    @property
    def full_tenants(self) -> list[str | None]:
        return [tenant for tenant, count in self._tenants.items() if count >= self._limits.per_tenant]

    @property
    def full_subjects(self) -> list[str]:
        return [subject for subject, count in self._subjects.items() if count >= self._limits.per_subject]

    def count(self, tenant_id: str, subject: str) -> int:
        """Return how many more operations of a subject may begin."""
        limits = self._limits
        return min(
            self.total,
            limits.per_tenant - self._tenants[tenant_id],
            limits.per_subject - self._subjects[subject],
        )


def retry_delay(failures: int) -> timedelta:
    """How long to wait after so many failures: 1 s, 2 s, 4 s ... 5 min."""
    return min(_FIRST_RETRY * 2 ** min(failures - 1, 20), _LONGEST_RETRY)
