"""Periodic work that runs on one server of a database at a time (decision 0063)."""

import asyncio
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from datetime import datetime, timedelta

import sqlalchemy as sa
from sqlalchemy import Connection
from sqlalchemy.dialects import postgresql

from roost.core import log
from roost.core.db.database import Database, metadata, read_database_time
from roost.core.db.types import UtcTime
from roost.core.periodic import PeriodicTask
from roost.core.problem import ResourceConflict

_PAUSE_SHARE = 0.9  # of the interval, in which no other server begins; this one begins its next run right after it
_log = log.get_logger("leases")
_held: ContextVar[tuple[str, int] | None] = ContextVar("held lease", default=None)

leases = sa.Table(
    "leases",
    metadata,
    sa.Column("name", sa.String(50), primary_key=True),
    sa.Column("token", sa.BigInteger, nullable=False),
    sa.Column("expires_at", UtcTime, nullable=False),
)


class TaskLeaseLost(ResourceConflict):
    """Another server has taken the work over; the transaction is undone."""

    message = "Another server runs this task"


class LeasedTask(PeriodicTask):
    """Periodic task of all servers that runs on one of them at a time, and about once an interval in all.

    A lease that is not extended in time cancels the run. Each transaction of the run checks at its end that the lease
    has its token still, so a server that hung, and that another one replaced, writes nothing more.
    """

    def __init__(
        self, db: Database, name: str, run: Callable[[], Awaitable[object]], interval: float, lease: float = 60.0
    ) -> None:
        """`name` is the same on all servers; `interval` and `lease` are in seconds."""
        super().__init__(name, run if db.is_sqlite else self._run_alone, interval)
        self._db, self._work = db, run
        self._lease, self._pause_after = lease, interval * _PAUSE_SHARE
        if not db.is_sqlite:
            db.add_commit_hook(self._check_lease)

    async def _run_alone(self) -> None:
        deadline = asyncio.get_running_loop().time() + self._lease
        token = await self._db.write(self._acquire)
        if token is None:
            return
        pause = 0.0
        hold = asyncio.timeout_at(deadline)

        async def extend() -> None:
            later = asyncio.get_running_loop().time() + self._lease
            is_held = await self._db.write(lambda connection: self._extend(connection, token, self._lease))
            if not hold.expired():
                hold.reschedule(later if is_held else 0)

        extension = PeriodicTask(f"lease of {self._name}", extend, self._lease / 3)
        outer = _held.set((self._name, token))
        try:
            async with hold:
                extension.start(self._lease / 3)
                await self._work()
            pause = self._pause_after
        except (TimeoutError, TaskLeaseLost) as error:
            if isinstance(error, TimeoutError) and not hold.expired():
                raise
            _log.warning("lease.lost", task=self._name)
        finally:
            _held.reset(outer)
            await extension.stop()
            await self._db.write(lambda connection: self._release(connection, token, pause))

    def _acquire(self, connection: Connection) -> int | None:
        """Return the token of the lease; None if another server has it, or had it a moment ago."""
        now = read_database_time(connection)
        until = now + timedelta(seconds=self._lease)
        insert = postgresql.insert(leases).values(name=self._name, token=1, expires_at=until)
        taken = {"token": leases.c.token + 1, "expires_at": until}
        free = leases.c.expires_at <= now
        upsert = insert.on_conflict_do_update(index_elements=[leases.c.name], set_=taken, where=free)
        return connection.execute(upsert.returning(leases.c.token)).scalar()

    def _extend(self, connection: Connection, token: int, seconds: float) -> bool:
        """Let the lease end after so many seconds; return whether it has this token still."""
        held = sa.and_(leases.c.name == self._name, leases.c.token == token)
        return (
            connection.execute(leases.update().where(held).values(expires_at=_after(connection, seconds))).rowcount > 0
        )

    def _release(self, connection: Connection, token: int, pause: float) -> None:
        """End the run. The token becomes another one, because an extension that is on its way may still arrive."""
        released = {"token": leases.c.token + 1, "expires_at": _after(connection, pause)}
        connection.execute(leases.update().where(leases.c.name == self._name, leases.c.token == token).values(released))

    def _check_lease(self, connection: Connection) -> None:
        held = _held.get()
        if held is None or held[0] != self._name:
            return
        query = sa.select(leases.c.token).where(leases.c.name == held[0], leases.c.token == held[1])
        if connection.execute(query.with_for_update(read=True)).first() is None:
            raise TaskLeaseLost


def _after(connection: Connection, seconds: float) -> datetime:
    return read_database_time(connection) + timedelta(seconds=seconds)
