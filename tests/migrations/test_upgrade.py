import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from alembic.script import ScriptDirectory
from sqlalchemy import event
from sqlalchemy.exc import DBAPIError

from roost import migrations
from roost.core.db import Connection, Database, DatabaseUnavailable
from roost.migrations import DatabaseTooNew, upgrade_database
from tests.architecture.code import ROOT

_UPGRADE = """
import sys
from roost.core.db import Database
from roost.migrations import upgrade_database
sys.stdin.read(1)
database = Database(sys.argv[1])
upgrade_database(database)
database.close()
"""


@pytest.fixture
def bare(bare_url: str) -> Iterator[Database]:
    database = Database(bare_url)
    yield database
    database.close()


def _tables(connection: Connection) -> set[str]:
    return set(sa.inspect(connection).get_table_names())


async def test_a_bare_database_gets_its_tables_and_a_second_time_changes_nothing(bare: Database) -> None:
    upgrade_database(bare)
    first = await bare.read(_tables)
    upgrade_database(bare)
    assert {"operations", "alembic_version"} <= first == await bare.read(_tables)


async def test_processes_that_start_together_take_turns_and_print_nothing(bare_url: str, bare: Database) -> None:
    starts = [
        subprocess.Popen(
            [sys.executable, "-W", "error", "-c", _UPGRADE, bare_url],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        for _ in range(3)
    ]
    for start in starts:
        assert start.stdin
        start.stdin.write(b".")
        start.stdin.flush()
    assert [(start.communicate()[0], start.returncode) for start in starts] == [(b"", 0)] * 3
    assert "operations" in await bare.read(_tables)


async def test_a_newer_database_is_refused_and_left_as_it_is(database: Database) -> None:
    newer = sa.text("UPDATE alembic_version SET version_num = '9999'")
    await database.write(lambda connection: connection.execute(newer))
    with pytest.raises(DatabaseTooNew, match="newer version of Roost"):
        upgrade_database(database)
    query = sa.text("SELECT version_num FROM alembic_version")
    assert await database.read(lambda connection: connection.execute(query).scalars().all()) == ["9999"]


async def test_an_upgrade_that_fails_leaves_nothing(bare: Database) -> None:
    sources = [Path(script.path).read_text() for script in reversed(_history())]
    last = re.findall(r'create_table\(\s*"(\w+)"', "".join(sources))[-1]
    await bare.write(lambda connection: connection.execute(sa.text(f"CREATE TABLE {last} (x INTEGER)")))
    with pytest.raises(DBAPIError):
        upgrade_database(bare)
    assert await bare.read(_tables) == {last}


async def test_foreign_keys_hold_after_an_upgrade(bare: Database) -> None:
    upgrade_database(bare)
    if bare.is_sqlite:
        assert await bare.write(lambda connection: connection.exec_driver_sql("PRAGMA foreign_keys").scalar()) == 1


def test_the_guide_names_every_migration_of_a_table_that_is_there(tmp_path: Path) -> None:
    """Those that create tables alone are not named."""
    database, statements = Database(f"sqlite:///{tmp_path / 'roost.db'}"), list[list[str]]()

    def record(*arguments: Any) -> None:
        statements.append(re.findall(r"\w+", arguments[2]))

    event.listen(database.writer, "before_cursor_execute", record)
    upgrade_database(database)
    database.close()
    touched: set[tuple[str, str]] = set()
    known: set[str] = set()
    new: set[str] = set()
    number = 1
    for words in statements:
        if words[:2] == ["UPDATE", "alembic_version"] or words[:3] == ["INSERT", "INTO", "alembic_version"]:
            known |= new
            new.clear()
            number += 1
        elif words[:2] == ["CREATE", "TABLE"]:
            new.add(words[2])
        elif words[0] != "PRAGMA":
            touched |= {(f"{number:04}", table) for table in known.intersection(words)}
    page = (ROOT / "docs/guides/upgrading.md").read_text()
    rows = re.findall(r"^\| (\d{4}(?:, \d{4})*) \| (.*) \|", page, re.MULTILINE)
    named = {
        (number, name)
        for numbers, row in rows
        for number in numbers.split(", ")
        for name in re.findall(r"`(\w+)`", row)
    }
    assert touched - named == set()
    assert {number for number, _ in named} == {number for number, _ in touched}


def test_the_history_is_one_line_and_files_bear_their_number() -> None:
    history = _history()
    assert [script.revision for script in history] == [f"{number:04}" for number in range(len(history), 0, -1)]
    assert all(Path(script.path).name.startswith(f"{script.revision}_") for script in history)


def _history():
    return list(ScriptDirectory(str(Path(migrations.__file__).parent)).walk_revisions())


def test_a_disk_that_cannot_be_written_is_a_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    database = Database(f"sqlite:///{tmp_path / 'roost.db'}")

    def fail(*_: object) -> None:
        database.run(lambda connection: connection.exec_driver_sql("PRAGMA max_page_count=1"))
        with database.writer.begin() as connection:
            connection.exec_driver_sql("CREATE TABLE one (id INTEGER)")

    monkeypatch.setattr(migrations, "_upgrade", fail)
    with pytest.raises(migrations.DatabaseUnwritable, match="full"):
        migrations.upgrade_database(database)
    database.close()


def test_a_database_server_that_is_away_is_a_problem() -> None:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    database = Database(f"postgresql://roost:secret@127.0.0.1:{port}/roost")
    with pytest.raises(DatabaseUnavailable, match=r"unavailable: .*127\.0\.0\.1") as problem:
        migrations.upgrade_database(database)
    assert "secret" not in problem.value.message
    database.close()
