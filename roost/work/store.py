"""The `operations` table and every line of SQL about it.

Time is read from this process's clock: the clocks of processes that share a database must agree to well within a lease.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import fields
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from roost.core import clock, ids
from roost.core.db import JsonText, UtcTime, metadata
from roost.work.errors import LeaseLost, OperationNotFound
from roost.work.model import JSON, Operation, OperationState

operations = sa.Table(
    "operations",
    metadata,
    sa.Column("number", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), primary_key=True),
    sa.Column("id", sa.String(36), nullable=False, unique=True),
    sa.Column("kind", sa.String(50), nullable=False),
    sa.Column("subject", sa.String(100), nullable=False),
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
    sa.Column("finished_at", UtcTime, index=True),
)
_o = operations.c
sa.Index(
    "ix_operations_unfinished",
    _o.subject,
    _o.number,
    sqlite_where=_o.finished_at.is_(None),
    postgresql_where=_o.finished_at.is_(None),
)
_FIELDS = [_o[field.name] for field in fields(Operation)]
_IDLE: dict[str, Any] = {"lease_owner": None, "lease_until": None}


def add(
    connection: Connection, kind: str, subject: str, payload: JSON = None, *, run_after: datetime | None = None
) -> Operation:
    """Add an operation to the caller's own write transaction; wake the loop after the commit."""
    if connection.dialect.name == "postgresql":
        # A number is drawn at the insert and seen at the commit. Without this, a transaction that commits late would
        # put an operation before one of the same subject that already runs.
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(sa.func.hashtextextended(subject, 0))))
    now = clock.utc_now()
    row = connection.execute(
        operations.insert()
        .values(
            id=ids.new_id(),
            kind=kind,
            subject=subject,
            payload=payload,
            state=OperationState.PENDING,
            attempts=0,
            failures=0,
            run_after=run_after or now,
            created_at=now,
        )
        .returning(*_FIELDS)
    )
    return _operation(row.one())


def get(connection: Connection, operation_id: str) -> Operation:
    """Raises OperationMissing."""
    row = connection.execute(sa.select(*_FIELDS).where(_o.id == operation_id)).first()
    if row is None:
        raise OperationNotFound
    return _operation(row)


def busy(connection: Connection, subject: str) -> bool:
    """Whether an operation of that subject is unfinished."""
    unfinished = sa.select(_o.number).where(_o.subject == subject, _o.finished_at.is_(None))
    return connection.execute(unfinished.limit(1)).first() is not None


def waiting(connection: Connection, kind: str, subject: str) -> Sequence[Operation]:
    """Operations that nobody has begun, oldest first; none of them begins before the transaction ends."""
    query = sa.select(*_FIELDS).where(_o.kind == kind, _o.subject == subject, _o.state == OperationState.PENDING)
    rows = connection.execute(query.where(_o.attempts == 0).order_by(_o.number).with_for_update())
    return [_operation(row) for row in rows]


def claim(
    connection: Connection,
    kinds: Iterable[str],
    *,
    owner: str,
    until: datetime,
    limit: int,
    held: Collection[str] = (),
) -> Sequence[Operation]:
    """Take up to `limit` operations that are due, oldest first; `held` are those that the caller still works on.

    Due is what waits and what another process let expire, if its subject has no older operation that is unfinished.
    The rows are locked before they change, so two processes never take the same; and since nothing that is
    finished becomes unfinished again, an older operation seen finished stays so.
    """
    now = clock.utc_now()
    older = operations.alias("older")
    free = sa.or_(
        sa.and_(_o.state == OperationState.PENDING, _o.run_after <= now),
        sa.and_(_o.state == OperationState.RUNNING, _o.lease_until < now),
    )
    behind = sa.exists().where(older.c.subject == _o.subject, older.c.number < _o.number, older.c.finished_at.is_(None))
    due = (
        sa.select(_o.number)
        .where(_o.finished_at.is_(None), _o.kind.in_(list(kinds)), _o.id.not_in(list(held)), free, ~behind)
        .order_by(_o.number)
        .limit(limit)
        .with_for_update(of=operations, skip_locked=True)
    )
    numbers = connection.execute(due).scalars().all()
    if not numbers:
        return []
    taken = (
        operations.update()
        .where(_o.number.in_(numbers))
        .values(state=OperationState.RUNNING, attempts=_o.attempts + 1, lease_owner=owner, lease_until=until)
        .returning(_o.number, *_FIELDS)
    )
    rows: list[Any] = sorted(connection.execute(taken).all(), key=_number)
    return [_operation(row) for row in rows]


def extend(connection: Connection, held: Iterable[Operation], until: datetime) -> set[str]:
    """Prolong leases; the ids of those that are still held."""
    return {
        operation.id
        for operation in sorted(held, key=lambda operation: operation.id)  # one order of row locks: no deadlock
        if connection.execute(operations.update().where(_held(operation)).values(lease_until=until)).rowcount == 1
    }


def fence(connection: Connection, operation: Operation) -> None:
    """Raises LeaseLost unless the attempt is the current one; it stays so until the transaction ends."""
    if connection.execute(sa.select(_o.number).where(_held(operation)).with_for_update()).first() is None:
        raise LeaseLost


def amend(connection: Connection, operation: Operation, payload: JSON) -> None:
    """Note how far a held operation has come, for steps that must not be taken again. Raises LeaseLost."""
    if connection.execute(operations.update().where(_held(operation)).values(payload=payload)).rowcount != 1:
        raise LeaseLost


def finish(connection: Connection, operation: Operation, result: JSON) -> None:
    """Raises LeaseLost, as all that end an attempt do."""
    _end(connection, operation, state=OperationState.DONE, result=result, error=None, finished_at=clock.utc_now())


def fail(connection: Connection, operation: Operation, error: JSON) -> None:
    failures = operation.failures + 1
    _end(
        connection, operation, state=OperationState.FAILED, failures=failures, error=error, finished_at=clock.utc_now()
    )


def retry(connection: Connection, operation: Operation, error: JSON, run_after: datetime) -> None:
    failures = operation.failures + 1
    _end(connection, operation, state=OperationState.PENDING, failures=failures, error=error, run_after=run_after)


def give_back(connection: Connection, operation: Operation) -> None:
    _end(connection, operation, state=OperationState.PENDING)


def release(connection: Connection, owner: str | None = None) -> int:
    """Give back all that an owner holds, or that anybody holds; how many they were."""
    query = operations.update().where(_o.state == OperationState.RUNNING)
    if owner is not None:
        query = query.where(_o.lease_owner == owner)
    return connection.execute(query.values(state=OperationState.PENDING, **_IDLE)).rowcount


def sweep(connection: Connection, before: datetime) -> int:
    """Forget what finished before a moment; how many they were."""
    return connection.execute(operations.delete().where(_o.finished_at < before)).rowcount


def _end(connection: Connection, operation: Operation, **values: Any) -> None:
    query = operations.update().where(_held(operation)).values(**values, **_IDLE)
    if connection.execute(query).rowcount != 1:
        raise LeaseLost


def _held(operation: Operation) -> sa.ColumnElement[bool]:
    return sa.and_(_o.id == operation.id, _o.attempts == operation.attempts, _o.state == OperationState.RUNNING)


def _number(row: Any) -> int:
    return row.number


def _operation(row: Any) -> Operation:
    values: dict[str, Any] = {field.name: getattr(row, field.name) for field in fields(Operation)}
    values["state"] = OperationState(values["state"])
    return Operation(**values)
