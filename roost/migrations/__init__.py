"""Brings a database to the tables that this code expects: one linear history for SQLite and PostgreSQL.

The whole upgrade is one transaction under a lock, so that processes that start together take turns and a process that
is killed half-way leaves nothing. A database that newer code has migrated is refused: it is never downgraded.
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

from roost.core.db import Database
from roost.core.problem import Problem

_LOCK = 0x726F6F7374  # the advisory lock's number on PostgreSQL: "roost"


class DatabaseTooNew(Problem):
    message = "The database was migrated by a newer version of Roost: start that version or a later one"


def upgrade_database(database: Database) -> None:
    """Migrate to the newest revision; returns at once when there is nothing to do. Blocking. Raises DatabaseTooNew."""
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent).replace("%", "%%"))
    scripts = ScriptDirectory.from_config(config)
    with _alone(database) as connection:
        present = MigrationContext.configure(connection).get_current_heads()
        if set(present) - {script.revision for script in scripts.walk_revisions()}:
            raise DatabaseTooNew
        config.attributes["connection"] = connection
        command.upgrade(config, "head")
        if database.is_sqlite and connection.exec_driver_sql("PRAGMA foreign_key_check").first():
            raise RuntimeError("a migration broke a foreign key")


@contextmanager
def _alone(database: Database) -> Generator[Connection]:
    """A connection inside a transaction that no other upgrade shares."""
    with database.writer.connect() as connection:
        if database.is_sqlite:
            _unguard(connection)
        with connection.begin():
            if not database.is_sqlite:
                connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_LOCK})")
            yield connection


def _unguard(connection: Connection) -> None:
    """Foreign keys off, because SQLite changes a table by dropping the old copy, which would delete what refers to it.

    The connection leaves the pool and is closed after the upgrade.
    """
    raw = connection.connection.driver_connection
    assert isinstance(raw, sqlite3.Connection)
    connection.detach()
    raw.execute("PRAGMA foreign_keys=OFF").close()
    raw.execute("PRAGMA busy_timeout=60000").close()  # another process's upgrade can take a while
