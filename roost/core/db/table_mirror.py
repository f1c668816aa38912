"""A table in memory, for look-ups that must do no I/O."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Generic, TypeVar

import sqlalchemy as sa
from sqlalchemy import Connection

from roost.core import log
from roost.core.db.database import Database, metadata, publish_on_commit
from roost.core.periodic import PeriodicTask

T = TypeVar("T")
_POLL_SECONDS = 0.5
_log = log.get_logger("table_mirror")

mirror_versions = sa.Table(
    "mirror_versions",
    metadata,
    sa.Column("name", sa.String(36), primary_key=True),
    sa.Column("version", sa.BigInteger, nullable=False),
)


class TableMirror(Generic[T]):
    """The values of a table by key; `mirror_versions` has a row for each mirror.

    A transaction that changes the table calls `publish_change`. This process has the new value soon after the commit,
    at once after `refresh`; other servers of the database have it within a second. Start it before the first look-up.
    """

    def __init__(self, db: Database, name: str, load: Callable[[Connection, str | None], Mapping[str, T]]) -> None:
        """`load` reads the value of one key, or all values; `name` is the mirror's own among all of the database."""
        self._db = db
        self._name, self._topic = name, f"mirror/{name}/"
        self._load = load
        self._values: dict[str, T] = {}
        self._version = -1
        self._listeners: list[Callable[[str], None]] = []
        self._turn = asyncio.Lock()  # a value that was read earlier never replaces one that was read later
        self._task = PeriodicTask(f"mirror of {name}", self._poll, _POLL_SECONDS)
        self._refreshes: set[asyncio.Task[None]] = set()
        self._unsubscribe: Callable[[], None] | None = None

    def get(self, key: str) -> T | None:
        return self._values.get(key)

    def subscribe(self, listener: Callable[[str], None]) -> None:
        """Call `listener(key)` after the value of a key changed."""
        self._listeners.append(listener)

    async def start(self) -> None:
        """Load the table, and follow its changes, on PostgreSQL also those of other servers."""
        self._unsubscribe = self._db.subscribe(self._follow)
        await self._poll()
        if not self._db.is_sqlite:
            self._task.start(_POLL_SECONDS)

    async def stop(self) -> None:
        """Idempotent."""
        if self._unsubscribe is not None:
            self._unsubscribe()
            self._unsubscribe = None
        for task in self._refreshes:
            task.cancel()
        await self._task.stop()

    def publish_change(self, connection: Connection, key: str) -> None:
        """Tell this process and the other servers of a change in the caller's transaction."""
        publish_on_commit(connection, self._topic + key)
        row = mirror_versions.c.name == self._name
        connection.execute(mirror_versions.update().where(row).values(version=mirror_versions.c.version + 1))

    async def refresh(self, key: str) -> None:
        async with self._turn:
            self._set(key, (await self._db.read(lambda connection: self._load(connection, key))).get(key))

    def _follow(self, topics: frozenset[str]) -> None:
        for topic in topics:
            if topic.startswith(self._topic):
                task = asyncio.create_task(self.refresh(topic.removeprefix(self._topic)))
                self._refreshes.add(task)
                task.add_done_callback(self._end_refresh)

    def _end_refresh(self, task: asyncio.Task[None]) -> None:
        self._refreshes.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.warning("table_mirror.refresh_failed", name=self._name, reason=str(error))  # the next poll sees it

    async def _poll(self) -> None:
        if await self._db.read(self._read_version) == self._version:
            return
        async with self._turn:

            def read(connection: Connection) -> tuple[int, Mapping[str, T]]:
                return self._read_version(connection), self._load(connection, None)

            self._version, loaded = await self._db.read_long(read)
            for key in {*self._values, *loaded}:
                self._set(key, loaded.get(key))

    def _set(self, key: str, value: T | None) -> None:
        if value == self._values.get(key):
            return
        if value is None:
            del self._values[key]
        else:
            self._values[key] = value
        for listener in self._listeners:
            listener(key)

    def _read_version(self, connection: Connection) -> int:
        query = sa.select(mirror_versions.c.version).where(mirror_versions.c.name == self._name)
        return connection.execute(query).scalar_one()
