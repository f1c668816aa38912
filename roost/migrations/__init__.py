"""Database migrations: one linear history for SQLite and PostgreSQL.

An upgrade is one transaction under a lock, so that processes that start together take turns and a killed process leaves
no partial upgrade. A database that newer code has migrated is rejected; there are no downgrades.
"""

import sqlite3
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection
from sqlalchemy.exc import OperationalError

from roost.core.db import Database
from roost.core.problem import Problem

_LOCK = 0x726F6F7374  # key of the advisory lock on PostgreSQL: "roost"


_UNWRITABLE = frozenset({sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN})


class DatabaseUnwritable(Problem):
    message = "The database cannot be written"


class DatabaseTooNew(Problem):
    message = "The database was migrated by a newer version of Roost: start that version or a later one"


def upgrade_database(database: Database) -> None:
    """Migrate to the newest revision, if necessary. Blocking. Raises DatabaseTooNew, DatabaseUnwritable."""
    try:
        _upgrade(database)
    except (OperationalError, sqlite3.OperationalError) as error:  # SQLAlchemy does not wrap an error of BEGIN
        reason = error.orig if isinstance(error, OperationalError) else error
        if getattr(reason, "sqlite_errorcode", 0) & 0xFF not in _UNWRITABLE:
            raise
        raise DatabaseUnwritable(f"{DatabaseUnwritable.message}: {reason}") from None


def _upgrade(database: Database) -> None:
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent).replace("%", "%%"))
    scripts = ScriptDirectory.from_config(config)
    with _exclusive_transaction(database) as connection:
        present = MigrationContext.configure(connection).get_current_heads()
        if set(present) - {script.revision for script in scripts.walk_revisions()}:
            raise DatabaseTooNew
        config.attributes["connection"] = connection
        command.upgrade(config, "head")
        if database.is_sqlite and connection.exec_driver_sql("PRAGMA foreign_key_check").first():
            raise RuntimeError("a migration broke a foreign key")


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
