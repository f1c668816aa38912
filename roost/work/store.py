"""The `operations` table and all SQL about it (decision 0003).

Processes use their own clocks; if they share a database, the clocks must differ by much less than a lease.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import fields
from datetime import datetime
from functools import cache, partial
from operator import attrgetter
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from roost.core import clock, ids
from roost.core.actor import SERVER, current_actor
from roost.core.db import ActorText, JsonText, UtcTime, metadata, publish_on_commit, read_one, read_record, split_values
from roost.core.problem import ProblemKind
from roost.work import model
from roost.work.faults import clear_fault, record_fault
from roost.work.model import JSON, FreeSlots, LeaseLost, Operation, OperationNotFound, OperationState, record_operation

operations = sa.Table(
    "operations",
    metadata,
    sa.Column("number", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), primary_key=True),
    sa.Column("id", sa.String(36), nullable=False, unique=True),
    sa.Column("kind", sa.String(50), nullable=False),
    sa.Column("subject", sa.String(100), nullable=False),
    sa.Column("tenant_id", sa.String(36)),
    sa.Column("host", sa.String(36)),
    sa.Column("payload", JsonText),
    sa.Column("state", sa.String(10), nullable=False),
    sa.Column("attempts", sa.Integer, nullable=False),
    sa.Column("failures", sa.Integer, nullable=False),
    sa.Column("lease_owner", sa.String(100)),
    sa.Column("lease_until", UtcTime),
    sa.Column("run_after", UtcTime, nullable=False),
    sa.Column("result", JsonText),
    sa.Column("error", JsonText),
    sa.Column("created_at", UtcTime, nullable=False),
    sa.Column("finished_at", UtcTime),
    sa.Column("actor", ActorText),
)
_o = operations.c
_UNFINISHED = _o.finished_at.is_(None)
_ORDERED = sa.and_(_UNFINISHED, _o.tenant_id.is_(None))
_UNORDERED = sa.and_(_UNFINISHED, _o.tenant_id.is_not(None))
for _name, _columns, _where in (
    ("ix_operations_finished_at", (_o.finished_at,), _o.finished_at.is_not(None)),
    ("ix_operations_unfinished", (_o.subject, _o.number), _UNFINISHED),
    ("ix_operations_ordered", (_o.kind, _o.actor, _o.number), _ORDERED),
    ("ix_operations_unordered", (_o.state, _o.kind, _o.subject, _o.run_after), _UNORDERED),
):
    sa.Index(_name, *_columns, sqlite_where=_where, postgresql_where=_where)
_FIELDS = [_o[field.name] for field in fields(Operation)]
_IDLE: dict[str, Any] = {"lease_owner": None, "lease_until": None}


def add_operation(
    connection: Connection,
    kind: str,
    subject: str,
    payload: JSON = None,
    *,
    run_after: datetime | None = None,
    tenant_id: str | None = None,
    host: str | None = None,
    operation_id: str | None = None,
) -> Operation:
    """Add an operation in the caller's write transaction; workers claim it after the commit.

    With a `tenant_id` it is unordered, and its kind must have limits. An ordered one with a `host` is claimed only by
    the worker of that name.
    """
    publish_on_commit(connection, model.wake_topic(kind, host))
    if tenant_id is None and connection.dialect.name == "postgresql":
        # The insert draws the number, the commit makes it visible. Without this lock, a late commit could put an
        # operation before one of the same subject that already runs.
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(sa.func.hashtextextended(subject, 0))))
    now = clock.utc_now()
    row = connection.execute(
        operations.insert()
        .values(
            id=operation_id or ids.new_id(),
            kind=kind,
            subject=subject,
            tenant_id=tenant_id,
            host=host,
            payload=payload,
            state=OperationState.PENDING,
            attempts=0,
            failures=0,
            run_after=run_after or now,
            created_at=now,
            actor=current_actor.get(),
        )
        .returning(*_FIELDS)
    )
    operation = _read_operation(row.one())
    record_operation(connection, operation, operation.state)
    return operation


def get_operation(connection: Connection, operation_id: str) -> Operation:
    """Return an operation. Raises OperationNotFound."""
    row = connection.execute(sa.select(*_FIELDS).where(_o.id == operation_id)).first()
    if row is None:
        raise OperationNotFound
    return _read_operation(row)


def is_subject_busy(connection: Connection, subject: str) -> bool:
    unfinished = sa.select(_o.number).where(_o.subject == subject, _UNFINISHED)
    return connection.execute(unfinished.limit(1)).first() is not None


def list_busy_subjects(connection: Connection, subjects: Collection[str], kinds: Collection[str]) -> set[str]:
    """Return those of the subjects that have an unfinished operation of one of the kinds."""
    query = sa.select(_o.subject).where(_o.kind.in_(kinds), _UNFINISHED)
    parts = [connection.execute(query.where(_o.subject.in_(part))).scalars() for part in split_values(subjects)]
    return set[str]().union(*parts)


def list_waiting_operations(connection: Connection, kind: str, subject: str) -> Sequence[Operation]:
    """List and lock the operations that never began, oldest first; none begins before the transaction ends."""
    query = sa.select(*_FIELDS).where(_o.kind == kind, _o.subject == subject, _o.state == OperationState.PENDING)
    rows = connection.execute(query.where(_UNFINISHED, _o.attempts == 0).order_by(_o.number).with_for_update())
    return [_read_operation(row) for row in rows]


def find_last_unfinished(connection: Connection, kind: str, subject: str) -> Operation | None:
    """Return the newest operation of a subject that is not finished."""
    query = sa.select(*_FIELDS).where(_o.kind == kind, _o.subject == subject, _o.finished_at.is_(None))
    return read_one(connection, query.order_by(_o.number.desc()).limit(1), _read_operation)


def claim_operations(
    connection: Connection,
    kinds: Iterable[str],
    *,
    owner: str,
    until: datetime,
    limit: int,
    exclude: Collection[str] = (),
    requested_first: bool = False,
) -> Sequence[Operation]:
    """Claim up to `limit` due ordered operations, oldest first; `exclude` has the ids that the caller already runs.

    requested_first: whether those that the server asked for by itself come last.
    An operation is due if it is pending, or its lease expired, and its subject has no older unfinished operation.
    Operations of another host are never claimed, not even after their lease.
    The rows are locked before they change, so two processes never claim the same one. A finished operation never
    becomes unfinished again, so the check for older ones cannot become false.
    """
    now, older = clock.utc_now(), operations.alias("older")
    is_claimable = sa.or_(
        sa.and_(_o.state == OperationState.PENDING, _o.run_after <= now),
        sa.and_(_o.state == OperationState.RUNNING, _o.lease_until < now),
    )
    is_ours = sa.or_(_o.host.is_(None), _o.host == owner)
    is_older = sa.and_(older.c.subject == _o.subject, older.c.number < _o.number, older.c.finished_at.is_(None))
    is_due = sa.and_(_ORDERED, is_claimable, is_ours, ~sa.exists().where(is_older))
    due = sa.select(_o.number).where(is_due, _o.kind.in_(list(kinds)), _o.id.not_in(list(exclude))).order_by(_o.number)
    # Two queries, because one that sorts by the actor would read all due operations.
    turns = [_o.actor.is_distinct_from(SERVER), _o.actor == SERVER] if requested_first else [sa.true()]
    claimed = list[Operation]()
    for turn in turns:
        claimed += _begin_attempts(connection, due.where(turn).limit(limit - len(claimed)), owner, until)
    return claimed


def claim_unordered(
    connection: Connection, kind: str, slots: FreeSlots, *, owner: str, until: datetime
) -> Sequence[Operation]:
    """Claim due unordered operations of a kind, as many as the free slots allow, and occupy the slots."""
    now, claimed = clock.utc_now(), list[Operation]()
    for subject, tenant_id in _due_subjects(connection, kind, now, slots):
        if (count := slots.count_free(tenant_id, subject)) > 0:
            due = sa.select(_o.number).where(_waiting(operations, kind), _o.subject == subject, _o.run_after <= now)
            new = _begin_attempts(connection, due.order_by(_o.run_after, _o.number).limit(count), owner, until)
            for operation in new:
                slots.occupy(operation)
            claimed.extend(new)
    return claimed


def release_expired(connection: Connection, kinds: Collection[str], exclude: Collection[str] = ()) -> None:
    """End the attempts at unordered operations whose leases have expired, except those in `exclude`."""
    running = sa.and_(_UNORDERED, _o.kind.in_(kinds), _o.state == OperationState.RUNNING)
    expired = sa.select(_o.number).where(running, _o.lease_until < clock.utc_now(), _o.id.not_in(list(exclude)))
    numbers = connection.execute(expired.with_for_update(skip_locked=True)).scalars().all()
    if numbers:
        idle = operations.update().where(_o.number.in_(numbers), _o.state == OperationState.RUNNING)
        _update_all(connection, idle.values(state=OperationState.PENDING, **_IDLE))


def _due_subjects(connection: Connection, kind: str, now: datetime, slots: FreeSlots) -> Sequence[tuple[str, str]]:
    """Return subjects with due operations, and their tenants, in random order."""
    values = {"kind": kind, "now": now, "total": slots.total, "tenants": slots.full_tenants}
    rows = connection.execute(_due_subjects_query(), {**values, "subjects": slots.full_subjects})
    return [(row.subject, row.tenant_id) for row in rows]


@cache  # to make it takes longer than to run it, every second
def _due_subjects_query() -> sa.Select[str, str]:
    """Return a recursive query that reads one index entry per subject, however many operations are pending."""
    later, due, full = operations.alias("later"), operations.alias("due"), partial(sa.bindparam, expanding=True)
    kind: sa.BindParameter[str] = sa.bindparam("kind")
    subjects = sa.select(sa.func.min(_o.subject).label("subject")).where(_waiting(operations, kind))
    subjects = subjects.cte("subjects", recursive=True)
    above = later.c.subject > subjects.c.subject
    next_subject = sa.select(sa.func.min(later.c.subject)).where(_waiting(later, kind), above)
    subjects = subjects.union_all(sa.select(next_subject.scalar_subquery()).where(subjects.c.subject.is_not(None)))
    is_due = sa.and_(due.c.subject == subjects.c.subject, due.c.run_after <= sa.bindparam("now"))
    first_due = sa.select(due.c.tenant_id).where(_waiting(due, kind), is_due)
    found = sa.select(subjects.c.subject, first_due.limit(1).scalar_subquery().label("tenant_id")).subquery().c
    query = sa.select(found.subject, found.tenant_id).where(found.tenant_id.is_not(None))
    query = query.where(found.tenant_id.not_in(full("tenants")), found.subject.not_in(full("subjects")))
    return query.order_by(sa.func.random()).limit(sa.bindparam("total"))


def _waiting(table: Any, kind: str | sa.BindParameter[str]) -> sa.ColumnElement[bool]:
    """Return the condition of pending unordered operations of a kind, with the columns of their index."""
    c = table.c
    return sa.and_(c.state == OperationState.PENDING, c.kind == kind, c.tenant_id.is_not(None), c.finished_at.is_(None))


def _begin_attempts(connection: Connection, due: sa.Select[tuple[int]], owner: str, until: datetime) -> list[Operation]:
    """Begin an attempt at each selected operation, except those that another process is claiming."""
    numbers = connection.execute(due.with_for_update(of=operations, skip_locked=True)).scalars().all()
    if not numbers:
        return []
    values = {"attempts": _o.attempts + 1, "lease_owner": owner, "lease_until": until}
    query = operations.update().where(_o.number.in_(numbers)).values(state=OperationState.RUNNING, **values)
    return _update_all(connection, query)


def extend_leases(connection: Connection, claims: Iterable[Operation], until: datetime) -> set[str]:
    """Extend the leases of current attempts and return their ids."""
    return {
        operation.id
        for operation in sorted(claims, key=lambda operation: operation.id)  # one order of row locks: no deadlock
        if _update_attempt(connection, operation, lease_until=until)
    }


def lock_attempt(connection: Connection, operation: Operation) -> None:
    """Lock the current attempt until the transaction ends. Raises LeaseLost."""
    if connection.execute(sa.select(_o.number).where(_is_current(operation)).with_for_update()).first() is None:
        raise LeaseLost


def update_payload(connection: Connection, operation: Operation, payload: JSON, step: str | None = None) -> None:
    """Store the progress of an attempt, and the name of the step that clients see from now on. Raises LeaseLost."""
    if not _update_attempt(connection, operation, payload=payload):
        raise LeaseLost
    record_operation(connection, operation, OperationState.RUNNING, step=step)


def finish_operation(connection: Connection, operation: Operation, result: JSON) -> None:
    """Record the result and end the attempt. Raises LeaseLost."""
    _end(connection, operation, state=OperationState.DONE, result=result, error=None, finished_at=clock.utc_now())
    if operation.tenant_id is None:
        clear_fault(connection, operation.subject, operation.kind)


def fail_operation(connection: Connection, operation: Operation, error: JSON) -> None:
    failures, now = operation.failures + 1, clock.utc_now()
    _end(connection, operation, state=OperationState.FAILED, failures=failures, error=error, finished_at=now)
    if operation.tenant_id is None:
        record_fault(connection, operation.subject, operation.kind, error["message"])


def retry_operation(connection: Connection, operation: Operation, error: JSON, run_after: datetime) -> None:
    failures = operation.failures + 1
    _end(connection, operation, state=OperationState.PENDING, failures=failures, error=error, run_after=run_after)


def postpone_operation(connection: Connection, operation: Operation, run_after: datetime, host: str = "") -> None:
    """End an attempt without a failure and schedule the next one, on another host if given. Raises LeaseLost."""
    publish_on_commit(connection, model.wake_topic(operation.kind, host or None))
    _end(connection, operation, state=OperationState.PENDING, run_after=run_after, **({"host": host} if host else {}))


def release_operation(connection: Connection, operation: Operation) -> None:
    _end(connection, operation, state=OperationState.PENDING)


def release_operations(connection: Connection, owner: str | None = None) -> int:
    """Release all running operations of one owner, or of all; return their number."""
    query = operations.update().where(_UNFINISHED, _o.state == OperationState.RUNNING)
    if owner is not None:
        query = query.where(_o.lease_owner == owner)
    return len(_update_all(connection, query.values(state=OperationState.PENDING, **_IDLE)))


def hasten_operations(connection: Connection, subject: str) -> None:
    """Make the retries of a subject due now, because what they wait for will not come."""
    waiting = sa.and_(_ORDERED, _o.subject == subject, _o.state == OperationState.PENDING)
    connection.execute(operations.update().where(waiting).values(run_after=clock.utc_now()))


def list_host_subjects(connection: Connection, host: str) -> Sequence[str]:
    """List the subjects of a host's unfinished operations."""
    return connection.execute(sa.select(_o.subject).where(_UNFINISHED, _o.host == host).distinct()).scalars().all()


def transfer_operations(connection: Connection, subject: str, host: str) -> None:
    """Give the pending operations of a subject, and of those below it, to another host."""
    is_own = sa.or_(_o.subject == subject, _o.subject.startswith(f"{subject}/", autoescape=True))
    query = operations.update().where(_UNFINISHED, _o.state == OperationState.PENDING, is_own)
    connection.execute(query.values(host=host))


def abandon_operations(connection: Connection, host: str) -> None:
    """Fail the unfinished operations of a host that does not come back."""
    error = {"kind": ProblemKind.UNAVAILABLE.value, "message": "The server of the operation was removed"}
    values = {"state": OperationState.FAILED, "error": error, "finished_at": clock.utc_now(), **_IDLE}
    _update_all(connection, operations.update().where(_UNFINISHED, _o.host == host).values(values))


def pause_operations(connection: Connection, kind: str, subject: str) -> None:
    """Pause the pending unordered operations of a kind and subject; running ones continue."""
    _change_state(connection, kind, subject, OperationState.PENDING, OperationState.PAUSED)


def resume_operations(connection: Connection, kind: str, subject: str) -> None:
    """Resume the paused operations of a kind and subject."""
    publish_on_commit(connection, model.wake_topic(kind))
    _change_state(connection, kind, subject, OperationState.PAUSED, OperationState.PENDING)


def _change_state(connection: Connection, kind: str, subject: str, old: OperationState, new: OperationState) -> None:
    query = operations.update().where(_UNORDERED, _o.state == old, _o.kind == kind, _o.subject == subject)
    connection.execute(query.values(state=new))


def count_operations(connection: Connection, kind: str, subject: str, *states: OperationState) -> int:
    """Return the number of unfinished unordered operations in these states."""
    query = sa.select(sa.func.count()).where(_UNORDERED, _o.state.in_(states), _o.kind == kind, _o.subject == subject)
    return connection.execute(query).scalar_one()


def count_unfinished(connection: Connection) -> Mapping[OperationState, int]:
    """Return the numbers of unfinished operations of all tenants by their state."""
    query = sa.select(_o.state, sa.func.count()).where(_UNFINISHED).group_by(_o.state)
    found = {OperationState(state): count for state, count in connection.execute(query)}
    states = (OperationState.PENDING, OperationState.PAUSED, OperationState.RUNNING)
    return {state: found.get(state, 0) for state in states}


def discard_operation(connection: Connection, operation_id: str) -> bool:
    """Delete an unordered operation unless it is running; return whether it does not exist any more."""
    selected = sa.and_(_o.id == operation_id, _o.tenant_id.is_not(None))
    connection.execute(operations.delete().where(selected, _o.state != OperationState.RUNNING))
    return connection.execute(sa.select(_o.number).where(selected)).first() is None


def discard_waiting(connection: Connection, subject: str) -> None:
    """Delete the unordered operations of a subject that are not running."""
    connection.execute(operations.delete().where(_UNORDERED, _o.state != OperationState.RUNNING, _o.subject == subject))


def sweep_operations(connection: Connection, before: datetime, limit: int) -> int:
    """Delete a batch of operations that finished before a time; return their number."""
    old = sa.select(_o.number).where(_o.finished_at < before).limit(limit).scalar_subquery()
    return connection.execute(operations.delete().where(_o.number.in_(old))).rowcount


def _end(connection: Connection, operation: Operation, **values: Any) -> None:
    if not _update_attempt(connection, operation, **values, **_IDLE):
        raise LeaseLost
    record_operation(connection, operation, values["state"], values.get("error"))


def _update_attempt(connection: Connection, operation: Operation, **values: Any) -> bool:
    """Write values to an operation; return False if the attempt is not current."""
    return connection.execute(operations.update().where(_is_current(operation)).values(values)).rowcount == 1


def _is_current(operation: Operation) -> sa.ColumnElement[bool]:
    return sa.and_(_o.id == operation.id, _o.attempts == operation.attempts, _o.state == OperationState.RUNNING)


def _read_operation(row: Any) -> Operation:
    return read_record(Operation, row, state=OperationState(row.state))


def _update_all(connection: Connection, query: sa.Update) -> list[Operation]:
    """Run an update of the states of operations; return them in the order of their numbers."""
    rows: list[Any] = sorted(connection.execute(query.returning(_o.number, *_FIELDS)).all(), key=attrgetter("number"))
    updated = [_read_operation(row) for row in rows]
    for operation in updated:
        record_operation(connection, operation, operation.state, operation.error)
    return updated
