"""Transactions: `await db.read(fn)` and `await db.write(fn)` run a synchronous function of a connection in one.

SQLite: reads run inline (WAL readers never wait for the writer), all writes run on one writer thread under
`BEGIN IMMEDIATE`, so that a transaction never fails midway because of a lock. PostgreSQL: both run in a small thread
pool. On both, a read sees one snapshot and cannot write. The functions must be short and do no other I/O; a read of
many rows is a `read_long`. Decision 0002 says why.
"""

import asyncio
import os
import sqlite3
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from datetime import datetime
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import URL, Connection, Engine, MetaData, create_engine, event
from sqlalchemy.engine import make_url
from sqlalchemy.exc import DBAPIError, OperationalError

from roost.core import clock, ids, log
from roost.core.db.changes import CHANGES, DataChange, record_change
from roost.core.db.notifications import notify_servers
from roost.core.machine.threads import FairThreads
from roost.core.outage import Outage
from roost.core.problem import DependencyAway, ServiceUnavailable

T = TypeVar("T")

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s_%(referred_table_name)s",
        "pk": "pk_%(table_name)s",
    }
)

_TOPICS = "topics of this transaction"
_POSTGRES_THREADS = 8
LONG_READS = 2
"""Long reads at a time, of as many owners."""
_DEADLOCK, _DISK_FULL = "40P01", "53100"
_NO_CONNECTION = frozenset({"08", "57"})
"""Classes of SQLSTATE: connection exceptions, and interventions of an operator, who stops a server for example."""
_TOO_MANY_CONNECTIONS = "53300"
_RETRY_SECONDS = 5
_FULL_OR_BROKEN = frozenset({sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR})
_PRAGMAS = (
    "case_sensitive_like=ON",  # as in PostgreSQL
    "busy_timeout=30000",  # ms; another process may write, and a commit waits for a slow disk
    "journal_mode=WAL",
    "synchronous=FULL",  # with NORMAL, a power cut could undo the last commits of a WAL
    "foreign_keys=ON",
    "temp_store=MEMORY",
    "journal_size_limit=16777216",  # a WAL that grew during a long read is cut again
)

_log = log.get_logger("database")


class DatabaseWriteFailed(DependencyAway):
    """The disk is full or broken. The transaction was rolled back; reads still work."""

    message = "The database cannot be written"


class DatabaseUnavailable(DependencyAway):
    """PostgreSQL is away, or cut the connection. A write may have been committed if it was cut at its very end."""

    message = "The database is unavailable"


class Database:
    """A database. Create it, run `roost.migrations.upgrade_database`, use it, `close` it."""

    def __init__(self, url: str) -> None:
        """Open the database at `sqlite:///PATH` or `postgresql://...`."""
        parsed = make_url(url)
        self.is_sqlite = parsed.get_backend_name() == "sqlite"
        if self.is_sqlite:
            self.writer = _sqlite(parsed, _PRAGMAS, begin="BEGIN IMMEDIATE")
            self._reader = _sqlite(parsed, (*_PRAGMAS, "query_only=ON"), begin="BEGIN")
            self._idle = deque[Connection]()  # for reads: a checkout from a pool takes longer than most of them
            self._threads = ThreadPoolExecutor(1, thread_name_prefix="db-writer")
        else:
            self.writer = _postgres(parsed)
            self._reader = self.writer.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
            self._threads = ThreadPoolExecutor(_POSTGRES_THREADS, thread_name_prefix="db")
        self._long_reads = FairThreads(LONG_READS, "db-long-reads")
        self._versions = count(1)
        self._server_outage, self._disk_outage = Outage("database"), Outage("database disk")  # a full disk can be read
        self.process_id = ids.new_id()
        """Identifies this process among those of the database."""
        self.version = 0
        """A number that is another one after each write transaction of this process."""
        self._listeners: list[Callable[[frozenset[str]], None]] = []
        self._commit_hooks: list[Callable[[Connection], None]] = []

    async def read(self, fn: Callable[[Connection], T]) -> T:
        """Run `fn(connection)` in one read transaction and return its result."""
        if self.is_sqlite:
            return self._read_here(fn)
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._transact, self._reader, fn)

    async def read_long(self, fn: Callable[[Connection], T], owner: str = "") -> T:
        """Run a read of many rows in a thread for such reads; those of one `owner`, a tenant, take turns."""
        return await self._long_reads.run(owner, lambda: self._transact(self._reader, fn))

    async def write(self, fn: Callable[[Connection], T]) -> T:
        """Run `fn(connection)` in one write transaction and return its result once it is committed to disk.

        `fn` may run again after a deadlock on PostgreSQL, so it must change nothing but the database. Cancelling the
        caller does not stop the transaction. Raises DatabaseWriteFailed.
        """
        topics = set[str]()
        context = copy_context()  # holds the actor of the changes, and what identifies the request in the log
        written = asyncio.get_running_loop().run_in_executor(
            self._threads, lambda: context.run(self._write_here, fn, topics)
        )
        written.add_done_callback(lambda done: self._publish(done, frozenset(topics)))
        return await asyncio.shield(written)  # subscribers learn of a commit whose caller was cancelled

    def subscribe(self, listener: Callable[[frozenset[str]], None]) -> Callable[[], None]:
        """Call `listener` with the topics of every `write` that commits; return the function that ends this.

        On PostgreSQL also with those of other servers, as far as a `ChangeListener` hears them, else with ANY_TOPIC.
        """
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def notify_subscribers(self, topics: frozenset[str]) -> None:
        """Call the subscribers of this process in its event loop."""
        for listener in tuple(self._listeners):
            listener(topics)

    def add_commit_hook(self, hook: Callable[[Connection], None]) -> None:
        """Call `hook(connection)` as the last step of every write transaction; its exceptions undo the transaction."""
        self._commit_hooks.append(hook)

    def run(self, fn: Callable[[Connection], T]) -> T:
        """Run `fn(connection)` in one write transaction without an event loop (for the command line)."""
        return self._threads.submit(self._write_here, fn, set()).result()

    @property
    def driver(self) -> Any:
        """The module of the database's driver; psycopg takes 5 MB, so nothing imports it for SQLite."""
        return self.writer.dialect.dbapi

    @property
    def connect_arguments(self) -> Mapping[str, Any]:
        """Arguments of the driver for a connection beside the pool."""
        return self.writer.dialect.create_connect_args(self.writer.url)[1]

    async def ping(self) -> None:
        await self.read(lambda connection: connection.exec_driver_sql("SELECT 1").scalar())

    def close(self) -> None:
        self._long_reads.close()
        self._threads.shutdown(wait=True)
        while self.is_sqlite and self._idle:
            self._idle.pop().close()
        self.writer.dispose()
        self._reader.dispose()

    def _read_here(self, fn: Callable[[Connection], T]) -> T:
        """Read on the calling thread; several connections exist only with loops in several threads."""
        try:
            connection = self._idle.pop()
        except IndexError:
            connection = self._reader.connect()
        try:
            with connection.begin():
                return fn(connection)
        finally:
            self._idle.append(connection)

    def _publish(self, written: "asyncio.Future[Any]", topics: frozenset[str]) -> None:
        # Asks for the exception first: no other code does if the caller was cancelled, which asyncio would report.
        if not written.cancelled() and written.exception() is None and topics:
            self.notify_subscribers(topics)

    def _write_here(self, fn: Callable[[Connection], T], topics: set[str]) -> T:
        def transaction(connection: Connection) -> T:
            topics.clear()
            connection.info[_TOPICS] = topics
            connection.info[CHANGES] = []
            result = fn(connection)
            for hook in self._commit_hooks:
                hook(connection)
            if topics and connection.dialect.name == "postgresql":
                notify_servers(connection, self.process_id, topics)
            return result

        try:
            result = self._transact(self.writer, transaction)
            self._disk_outage.end()
            return result
        finally:
            self.version = next(self._versions)  # after a failure too: the connection may be cut after the commit

    def _transact(self, engine: Engine, fn: Callable[[Connection], T], tries: int = 3) -> T:
        try:
            with engine.begin() as connection:
                result = fn(connection)
            self._server_outage.end()
            return result
        except sqlite3.OperationalError as error:  # of BEGIN, which SQLAlchemy does not wrap
            if error.sqlite_errorcode & 0xFF not in _FULL_OR_BROKEN:
                raise
            self._disk_outage.report(str(error))
            raise DatabaseWriteFailed from None
        except DBAPIError as error:
            if _is_full_or_broken(error):
                self._disk_outage.report(str(error.orig))
                raise DatabaseWriteFailed from None
            if _is_unavailable(error):
                self._server_outage.report(str(error.orig))
                raise DatabaseUnavailable(retry_after=_RETRY_SECONDS) from None
            if tries == 1 or getattr(error.orig, "sqlstate", None) != _DEADLOCK:
                raise
        return self._transact(engine, fn, tries - 1)


def publish_on_commit(connection: Connection, topic: str) -> None:
    """Tell the subscribers of all servers about `topic` when the transaction of the connection commits."""
    connection.info.setdefault(_TOPICS, set()).add(topic)


def read_database_time(connection: Connection) -> datetime:
    """Return the time of the database's machine: one clock for all servers, whose own clocks may differ."""
    if connection.dialect.name == "sqlite":
        return clock.utc_now()
    return connection.exec_driver_sql("SELECT clock_timestamp()").scalar_one()


async def write_change(db: Database, change: DataChange) -> None:
    """Record a change that was made outside of the database, for example by an engine.

    A database that cannot be written does not undo that change, so it is no error of it.
    """
    try:
        await db.write(lambda connection: record_change(connection, change))
    except ServiceUnavailable as problem:
        _log.warning("database.change_not_recorded", type=change.type, id=change.id, reason=problem.message)


def _is_full_or_broken(error: DBAPIError) -> bool:
    """Return whether the error means that the disk is full or broken; SQLite reports some full disks as I/O errors."""
    code = getattr(error.orig, "sqlite_errorcode", 0)
    return code & 0xFF in _FULL_OR_BROKEN or getattr(error.orig, "sqlstate", None) == _DISK_FULL


def _is_unavailable(error: DBAPIError) -> bool:
    """Return whether PostgreSQL refuses connections, or cut this one; it gives no code for failed connections."""
    if not hasattr(error.orig, "sqlstate"):  # SQLite's; psycopg, which takes 5 MB, is not imported for it
        return False
    state: str | None = getattr(error.orig, "sqlstate", None)
    is_refused = isinstance(error, OperationalError) and state in {None, _TOO_MANY_CONNECTIONS}
    return error.connection_invalidated or is_refused or (state or "")[:2] in _NO_CONNECTION


def _postgres(url: URL) -> Engine:
    engine = create_engine(
        url.set(drivername="postgresql+psycopg"),
        pool_size=_POSTGRES_THREADS + LONG_READS,  # one for each thread, so that none waits for a connection
        max_overflow=0,
        pool_pre_ping=True,  # else the first requests after a restart of PostgreSQL would fail
        connect_args={"connect_timeout": 5},
    )

    def drop_notifications(connection: Any, _record: Any) -> None:
        # Behind a pooler, those that another client asked for may arrive here, and psycopg would keep them all.
        connection.add_notify_handler(len)

    event.listen(engine, "connect", drop_notifications)
    return engine


def _close_files(path: Path) -> None:
    """Create the file if it is missing, and take it and the files beside it from other users, whatever the umask."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    for file in (path, path.with_name(f"{path.name}-wal"), path.with_name(f"{path.name}-shm")):  # have its mode if new
        if file.exists() and file.stat().st_mode & 0o077:
            file.chmod(0o600)


def _sqlite(url: URL, pragmas: tuple[str, ...], begin: str) -> Engine:
    if not url.database or url.database == ":memory:":
        raise ValueError(f"a SQLite database needs a file, got {url.database!r}")
    _close_files(Path(url.database))
    engine = create_engine(url, connect_args={"check_same_thread": False})

    def connect(connection: sqlite3.Connection, _record: Any) -> None:
        connection.isolation_level = None  # disables implicit transactions of the sqlite3 module
        for pragma in pragmas:
            connection.execute(f"PRAGMA {pragma}").close()

    def start(connection: Connection) -> None:
        driver: Any = connection.connection.dbapi_connection  # bypasses SQLAlchemy, because every read runs this
        driver.execute(begin).close()

    event.listen(engine, "connect", connect)
    event.listen(engine, "begin", start)
    return engine
