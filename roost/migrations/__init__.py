"""Database migrations: one linear history for SQLite and PostgreSQL.

An upgrade is one transaction under a lock, so that processes that start together take turns and a killed process leaves
no partial upgrade. A database that newer code has migrated is rejected; there are no downgrades.
"""

import sqlite3
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import Connection, inspect
from sqlalchemy.exc import OperationalError

from roost.core.db import Database, DatabaseUnavailable
from roost.core.problem import Problem

_LOCK = 0x726F6F7374  # key of the advisory lock on PostgreSQL: "roost"
_VERSIONS = Path(__file__).with_name("versions")
_UNWRITABLE = frozenset({sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN})


class DatabaseUnwritable(Problem):
    message = "The database cannot be written"


class DatabaseTooNew(Problem):
    message = "The database was migrated by a newer version of Roost: start that version or a later one"


def upgrade_database(database: Database) -> tuple[str | None, str]:
    """Migrate to the newest revision, if necessary; return the one before, None for a new database, and that. Blocking.

    Raises DatabaseTooNew, DatabaseUnavailable, DatabaseUnwritable.
    """
    try:
        return _upgrade(database)
    except (OperationalError, sqlite3.OperationalError) as error:  # SQLAlchemy does not wrap an error of BEGIN
        reason = error.orig if isinstance(error, OperationalError) else error
        if not database.is_sqlite:
            first_line = str(reason).partition("\n")[0]
            raise DatabaseUnavailable(f"{DatabaseUnavailable.message}: {first_line}") from None
        if getattr(reason, "sqlite_errorcode", 0) & 0xFF not in _UNWRITABLE:
            raise
        raise DatabaseUnwritable(f"{DatabaseUnwritable.message}: {reason}") from None


def _upgrade(database: Database) -> tuple[str | None, str]:
    revisions = sorted(file.name[:4] for file in _VERSIONS.glob("[0-9]*.py"))
    with _exclusive_transaction(database) as connection:
        present = _read_revision(connection)
        if present == revisions[-1]:
            return present, revisions[-1]
        if present is not None and present not in revisions:
            raise DatabaseTooNew
        _run_migrations(connection)
        if database.is_sqlite and connection.exec_driver_sql("PRAGMA foreign_key_check").first():
            raise RuntimeError("a migration broke a foreign key")
    return present, revisions[-1]


def _read_revision(connection: Connection) -> str | None:
    """Return the revision of the database, None for a new one."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    return connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalar()


def _run_migrations(connection: Connection) -> None:
    from alembic import command  # only for an upgrade: with its templates it takes 7 MB of memory
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(_VERSIONS.parent).replace("%", "%%"))
    config.attributes["connection"] = connection
    command.upgrade(config, "head")


@contextmanager
def _exclusive_transaction(database: Database) -> Generator[Connection]:
    """Provide a connection in a transaction that excludes other upgrades."""
    with database.writer.connect() as connection:
        if database.is_sqlite:
            _disable_foreign_keys(connection)
        with connection.begin():
            if not database.is_sqlite:
                connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_LOCK})")
            yield connection


def _disable_foreign_keys(connection: Connection) -> None:
    """Turn off foreign keys, because SQLite alters a table by dropping its old copy, which would delete references.

    The connection leaves the pool and is closed after the upgrade.
    """
    raw = connection.connection.driver_connection
    assert isinstance(raw, sqlite3.Connection)
    connection.detach()
    raw.execute("PRAGMA foreign_keys=OFF").close()
    raw.execute("PRAGMA busy_timeout=60000").close()  # another process's upgrade can take a while
