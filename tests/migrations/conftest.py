"""Databases with rows of each revision, upgraded to the newest."""

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy.engine import make_url

from roost import migrations
from roost.core.db import Database
from tests.migrations.sample_rows import ROWS
from tests.support.databases import postgres_copy


def list_revisions() -> Sequence[str]:
    """Return the revisions, oldest first."""
    scripts = ScriptDirectory(str(Path(migrations.__file__).parent))
    return [script.revision for script in reversed(list(scripts.walk_revisions()))]


@pytest.fixture(scope="module")
def upgraded_sqlite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("upgraded") / "roost.db"
    _create_and_upgrade(f"sqlite:///{path}")
    return path


@pytest.fixture(scope="module")
def upgraded_postgresql(postgres_url: str) -> Iterator[str]:
    for url in postgres_copy(postgres_url, "template0"):
        _create_and_upgrade(url)
        yield str(make_url(url).database)


@pytest.fixture
def upgraded(dialect: str, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    """Return a database with rows of each revision, upgraded to the newest."""
    template = request.getfixturevalue(f"upgraded_{dialect}")
    if dialect == "sqlite":
        urls = iter([f"sqlite:///{shutil.copy(template, tmp_path / 'roost.db')}"])
    else:
        urls = postgres_copy(request.getfixturevalue("postgres_url"), template)
    for url in urls:
        database = Database(url)
        yield database
        database.close()


def _create_and_upgrade(url: str) -> None:
    database = Database(url)
    config = Config()
    config.set_main_option("script_location", str(Path(migrations.__file__).parent))
    for revision in list_revisions():
        with database.writer.begin() as connection:
            config.attributes["connection"] = connection
            command.upgrade(config, revision)
            for table, row in ROWS.get(revision, ()):
                connection.execute(sa.insert(sa.table(table, *map(sa.column, row))).values(row))
    migrations.upgrade_database(database)
    database.close()
