"""The migrations create the tables that the services declare, on both databases."""

from importlib import import_module
from pathlib import Path

from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext

import roost
from roost.core.db import Connection, Database, metadata

_PACKAGE = Path(roost.__file__).parent


def _declare_all() -> None:
    for path in (*_PACKAGE.rglob("store.py"), _PACKAGE / "core/db/table_mirror.py"):
        import_module(".".join(path.relative_to(_PACKAGE.parent).with_suffix("").parts))


def _differences(connection: Connection) -> list[object]:
    options = {"compare_type": True, "compare_server_default": True}
    return compare_metadata(MigrationContext.configure(connection, opts=options), metadata)


async def test_migrations_create_the_declared_tables(database: Database) -> None:
    _declare_all()
    assert "operations" in metadata.tables
    assert await database.write(_differences) == []
