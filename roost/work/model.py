"""The operation: a durable row of background work, with its errors, retry delays and concurrency limits. No I/O."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from roost.core.actor import Actor
from roost.core.db import Connection, DataChange, record_change
from roost.core.problem import NotFound, ResourceConflict, ServiceUnavailable

JSON = Any

LEASE_SECONDS = 15.0
RETENTION = timedelta(days=7)
"""Age at which finished operations, and faults that nothing tried again, are deleted."""
CRASH_RETRIES = 5
"""Maximum retries after unexpected exceptions, which are not known to be temporary; a kind may have fewer."""

_FIRST_RETRY = timedelta(seconds=1)
_LONGEST_RETRY = timedelta(minutes=5)


class OperationNotFound(NotFound):
    """The operation does not exist, or finished longer ago than `RETENTION`."""

    message = "Operation not found"


class LeaseLost(ResourceConflict):
    """The attempt is over: a newer one began, or the operation was released. It must not write any more."""

    message = "The operation is no longer held by this process"


class SubjectElsewhere(ServiceUnavailable):
    """The server of the id `host` has the subject, and gets an operation that ends so; None if no server has it."""

    def __init__(self, message: str | None = None, *, host: str | None = None) -> None:
        super().__init__(message)
        self.host = host


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
    attempts: number of attempts; also the fencing token, because writes of an earlier attempt are refused.
    failures: number of attempts that ended in an error; interruptions (crash, restart, lost lease) do not count.
    error: `{"kind": ..., "message": ...}` of the last failure, also while a retry is pending.
    actor: who asked for it; None for one from before actors were recorded.
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
    actor: Actor | None = None

    @property
    def is_finished(self) -> bool:
        return self.state in {OperationState.DONE, OperationState.FAILED}


@dataclass(frozen=True)
class OperationLimits:
    """Maximum concurrent operations of a kind in one process: in total, of one tenant, and of one subject."""

    total: int
    per_tenant: int
    per_subject: int


class FreeSlots:
    """Counter of the operations that may still begin beside the running ones, within the limits of their kind."""

    def __init__(self, limits: OperationLimits, running: Iterable[Operation]) -> None:
        self._limits = limits
        self._occupied = 0
        self._tenants = Counter[str | None]()
        self._subjects = Counter[str]()
        for operation in running:
            self.occupy(operation)

    def occupy(self, operation: Operation) -> None:
        self._occupied += 1
        self._tenants[operation.tenant_id] += 1
        self._subjects[operation.subject] += 1

    @property
    def total(self) -> int:
        return self._limits.total - self._occupied

    @property
    def full_tenants(self) -> list[str | None]:
        return [tenant for tenant, count in self._tenants.items() if count >= self._limits.per_tenant]

    @property
    def full_subjects(self) -> list[str]:
        return [subject for subject, count in self._subjects.items() if count >= self._limits.per_subject]

    def count_free(self, tenant_id: str, subject: str) -> int:
        """Return how many more operations of a subject may begin."""
        of_tenant = self._limits.per_tenant - self._tenants[tenant_id]
        return min(self.total, of_tenant, self._limits.per_subject - self._subjects[subject])


def wake_topic(kind: str, host: str | None = None) -> str:
    """Return the topic that wakes the workers of a kind, or only that of a host."""
    return f"operations/{kind}/{host or ''}"


def retry_delay(failures: int) -> timedelta:
    """Return the delay after a number of failures: 1 s, 2 s, 4 s ... 5 min."""
    return min(_FIRST_RETRY * 2 ** min(failures - 1, 20), _LONGEST_RETRY)


def record_operation(
    connection: Connection, operation: Operation, state: OperationState, error: JSON = None, step: str | None = None
) -> None:
    """Record the state of an operation; an ordered one belongs to the agent of its subject."""
    agent_id = operation.subject.partition("/")[0] if operation.tenant_id is None else None
    data = {
        "kind": operation.kind,
        "state": state.value,
        "step": step,
        "attempts": operation.attempts,
        "error": error and error["message"],
    }
    change = DataChange("operation", "changed", operation.id, operation.tenant_id, agent_id, data, operation.actor)
    record_change(connection, change)
