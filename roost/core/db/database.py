"""`await db.read(fn)` and `await db.write(fn)`: run a synchronous function of a connection in one transaction.

SQLite: reads run inline (WAL readers never wait for the writer), all writes run on one writer thread under
`BEGIN IMMEDIATE`, so a transaction never fails half-way for a lock. PostgreSQL: both run in a small pool of threads.
The functions must be short and must not do I/O of their own.
"""

import asyncio
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine, MetaData, create_engine, event
from sqlalchemy.engine import make_url
from sqlalchemy.exc import OperationalError

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

_POSTGRES_THREADS = 8
_DEADLOCK = "40P01"


class Database:
    """One database. Create it, `migrate` it (see `roost.migrations`), use it, `close` it."""

    def __init__(self, url: str) -> None:
        """`url` is `sqlite:///PATH` or `postgresql://...`."""
        self.url = url.replace("postgresql://", "postgresql+psycopg://", 1)
        self.is_sqlite = self.url.startswith("sqlite")
        if self.is_sqlite:
            self.writer = _sqlite(self.url, begin="BEGIN IMMEDIATE")
            self._reader = _sqlite(self.url, begin="BEGIN")
            self._threads = ThreadPoolExecutor(1, thread_name_prefix="db-writer")
        else:
            self.writer = self._reader = create_engine(
                self.url, pool_size=_POSTGRES_THREADS, max_overflow=0, pool_pre_ping=True
            )
            self._threads = ThreadPoolExecutor(_POSTGRES_THREADS, thread_name_prefix="db")

    async def read(self, fn: Callable[[Connection], T]) -> T:
        """The result of `fn(connection)` inside one read transaction."""
        if self.is_sqlite:
            with self._reader.begin() as connection:
                return fn(connection)
        return await self._in_thread(self._reader, fn)

    async def write(self, fn: Callable[[Connection], T]) -> T:
        """The result of `fn(connection)` inside one transaction; committed and on disk when this returns.

        `fn` can run twice (a deadlock on PostgreSQL is tried again once): it must not change anything but the database.
        """
        return await self._in_thread(self.writer, fn)

    def run(self, fn: Callable[[Connection], T]) -> T:
        """`write` for callers without an event loop (the command line)."""
        return self._threads.submit(_transact, self.writer, fn).result()

    async def ping(self) -> None:
        await self.read(lambda connection: connection.exec_driver_sql("SELECT 1").scalar())

    def close(self) -> None:
        self._threads.shutdown(wait=True)
        self.writer.dispose()
        self._reader.dispose()

    async def _in_thread(self, engine: Engine, fn: Callable[[Connection], T]) -> T:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, _transact, engine, fn)


def _transact(engine: Engine, fn: Callable[[Connection], T]) -> T:
    try:
        with engine.begin() as connection:
            return fn(connection)
    except OperationalError as error:
        if getattr(error.orig, "sqlstate", None) != _DEADLOCK:
            raise
    with engine.begin() as connection:
        return fn(connection)


def _sqlite(url: str, begin: str) -> Engine:
    path = make_url(url).database
    if path is None:
        raise ValueError("a SQLite database needs a file")
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    engine = create_engine(url, connect_args={"check_same_thread": False, "timeout": 5})

    def connect(connection: sqlite3.Connection, _record: Any) -> None:
        connection.isolation_level = None  # transactions begin where we say, not where the module guesses
        for pragma in (
            "journal_mode=WAL",
            "synchronous=FULL",
            "foreign_keys=ON",
            "busy_timeout=5000",
            "temp_store=MEMORY",
            "journal_size_limit=16777216",
        ):
            connection.execute(f"PRAGMA {pragma}").close()

    def start(connection: Connection) -> None:
        connection.exec_driver_sql(begin)

    event.listen(engine, "connect", connect)
    event.listen(engine, "begin", start)
    return engine
