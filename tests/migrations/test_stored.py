"""The migration that adds usage counters counts the existing files."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from alembic import command
from alembic.config import Config

from roost import migrations
from roost.core.db import Connection, Database
from roost.storage.content import store


@pytest.fixture
def before(bare_url: str) -> Iterator[Database]:
    """Return a database at the revision before."""
    database = Database(bare_url)
    config = Config()
    config.set_main_option("script_location", str(Path(migrations.__file__).parent))
    with database.writer.begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "0013")
    yield database
    database.close()


def _fill(connection: Connection) -> None:
    for tenant in ("a", "b", "c"):
        _add(connection, "tenants", id=tenant, name=tenant, plan="free", created_at=0)
    for pack, size in (("1", 100), ("2", 20), ("3", 3)):
        _add(connection, "packs", id=pack, size=size, damaged=False, created_at=0)
    for pack, tenant in (("1", "a"), ("2", "a"), ("3", "b")):
        _add(connection, "holds", pack_id=pack, holder=f"file/{pack}", tenant_id=tenant, network="private")


def _add(connection: Connection, table: str, **row: Any) -> None:
    connection.execute(sa.insert(sa.table(table, *map(sa.column, row))).values(row))


async def test_existing_packs_are_counted(before: Database) -> None:
    await before.write(_fill)
    migrations.upgrade_database(before)
    for tenant, size in (("a", 120), ("b", 3), ("c", 0)):
        assert await before.read(lambda connection, tenant=tenant: store.stored_bytes(connection, tenant)) == size
