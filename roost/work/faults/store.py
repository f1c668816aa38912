"""What keeps failing: since when, how often and why, until work of that kind and subject succeeds (decision 0047).

Operations are deleted some days after their end, and a periodic one is new each time; a fault is what its owner sees.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy import Connection

from roost.core import clock
from roost.core.db import UtcTime, metadata, read_one, read_record


@dataclass(frozen=True)
class OperationFault:
    """Operations of a kind that ended in failures, none in a success; times of the first and the last one."""

    kind: str
    failing_since: datetime
    failed_at: datetime
    failures: int
    reason: str


operation_faults = sa.Table(
    "operation_faults",
    metadata,
    sa.Column("subject", sa.String(100), primary_key=True),
    sa.Column("kind", sa.String(50), primary_key=True),
    sa.Column("failing_since", UtcTime, nullable=False),
    sa.Column("failed_at", UtcTime, nullable=False),
    sa.Column("failures", sa.Integer, nullable=False),
    sa.Column("reason", sa.Text, nullable=False),
)
_f = operation_faults.c
_FIELDS = [_f[field.name] for field in fields(OperationFault)]


def record_fault(connection: Connection, subject: str, kind: str, reason: str) -> None:
    """Record a failure; those of one subject and kind come one after the other."""
    now = clock.utc_now()
    failed = (
        operation_faults.update()
        .where(_is_of(subject, kind))
        .values(failed_at=now, failures=_f.failures + 1, reason=reason)
    )
    if connection.execute(failed).rowcount == 0:
        values = {"failing_since": now, "failed_at": now, "failures": 1, "reason": reason}
        connection.execute(operation_faults.insert().values(subject=subject, kind=kind, **values))


def clear_fault(connection: Connection, subject: str, kind: str) -> None:
    """Forget the failures before a success."""
    connection.execute(operation_faults.delete().where(_is_of(subject, kind)))


def list_faults(connection: Connection, subject: str) -> Sequence[OperationFault]:
    """List the faults of a subject and of those below it (`<subject>/...`), the oldest first."""
    query = sa.select(*_FIELDS).where(_is_within(subject)).order_by(_f.failing_since, _f.kind)
    return [read_record(OperationFault, row) for row in connection.execute(query)]


def find_fault(connection: Connection, subject: str, kind: str) -> OperationFault | None:
    query = sa.select(*_FIELDS).where(_is_of(subject, kind))
    return read_one(connection, query, lambda row: read_record(OperationFault, row))


def forget_faults(connection: Connection, subject: str) -> None:
    """Delete the faults of a subject that is deleted, and of those below it."""
    connection.execute(operation_faults.delete().where(_is_within(subject)))


def sweep_faults(connection: Connection, before: datetime) -> None:
    """Delete faults whose last failure was before a time: nothing tries any more."""
    connection.execute(operation_faults.delete().where(_f.failed_at < before))


def count_faults(connection: Connection) -> int:
    return connection.execute(sa.select(sa.func.count()).select_from(operation_faults)).scalar_one()


def _is_of(subject: str, kind: str) -> sa.ColumnElement[bool]:
    return sa.and_(_f.subject == subject, _f.kind == kind)


def _is_within(subject: str) -> sa.ColumnElement[bool]:
    return sa.or_(_f.subject == subject, _f.subject.startswith(f"{subject}/", autoescape=True))
