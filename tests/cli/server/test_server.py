"""`roost api routes`: all endpoints, without a server."""

import asyncio
import json
import socket
import subprocess
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from typer.testing import CliRunner

from roost import app, config, migrations
from roost.cli.main import cli
from roost.core.db import Database
from roost.core.problem import Problem
from roost.drivers.facilitator import local_loader
from roost.http.stack.routes import GATEWAY, JWT, PLATFORM
from roost.identity import tenants
from roost.storage.content.model import ContentNetwork
from roost.storage.content.service import ContentService, hold_packs
from roost.storage.content.unixfs.profile import V1
from roost.storage.files.model import File, FileMetadata
from roost.storage.files.service import FileService, NewFile
from tests.cli.terminal import run


def test_routes_as_table_and_json() -> None:
    rows = json.loads(run("api", "routes", "-o", "json").stdout)
    create = next(row for row in rows if (row["method"], row["path"]) == ("POST", "/v0/agents"))
    assert create == {
        "method": "POST",
        "path": "/v0/agents",
        "credentials": [JWT],
        "right": "write",
        "addresses": ["management"],
        "handler": "roost.agents.lifecycle.workflows.api.create_agent",
    }
    show = next(row for row in rows if (row["method"], row["path"]) == ("GET", "/v0/agents/{agentId}"))
    assert show["credentials"] == [JWT, GATEWAY, PLATFORM]
    head, *lines = run("api", "routes").stdout.splitlines()
    assert head.split() == ["METHOD", "PATH", "CREDENTIALS", "ADDRESSES", "RIGHT", "HANDLER"]
    assert len(lines) == len(rows)


def test_the_description_of_the_api() -> None:
    described = json.loads(run("api", "openapi").stdout)
    assert described["openapi"].startswith("3.1")
    assert "/v0/agents/{agentId}/chat" in described["paths"]


KEY = "59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d"
RPC = ("--rpc", "http://127.0.0.1:1")


def refusal(folder: object, *flags: str, **environment: str) -> str:
    """Run the command; return the message of its problem."""
    result = CliRunner().invoke(cli, ["facilitator", "--data", str(folder), *flags], env=environment)
    assert isinstance(result.exception, Problem), result.output
    assert KEY not in result.output + result.exception.message
    return result.exception.message


@pytest.mark.parametrize(
    ("flags", "environment", "words"),
    [
        ((), {"ROOST_FACILITATOR_KEY": KEY}, "ROOST_FACILITATOR_RPC"),
        (RPC, {}, "ROOST_FACILITATOR_KEY_FILE"),
        ((*RPC, "--host", "0.0.0.0"), {"ROOST_FACILITATOR_KEY": KEY}, "ROOST_FACILITATOR_TOKEN"),
        ((*RPC, "--host", "example.com"), {"ROOST_FACILITATOR_KEY": KEY}, "ROOST_FACILITATOR_TOKEN"),
        (RPC, {"ROOST_FACILITATOR_KEY": KEY[1:]}, "64 hexadecimal digits"),
        (RPC, {"ROOST_FACILITATOR_KEY": KEY}, "No chain answers"),
        (RPC, {"ROOST_FACILITATOR_KEY": KEY, "ROOST_FACILITATOR_TOKEN": "short"}, "16 printable"),
        (("--rpc", "x"), {"ROOST_FACILITATOR_KEY": KEY}, "facilitator_rpc"),
    ],
)
def test_refusals_name_the_setting(
    tmp_path: object, flags: Sequence[str], environment: dict[str, str], words: str
) -> None:
    assert words in refusal(tmp_path, *flags, **environment)


def test_the_libraries_are_optional(tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        local_loader.importlib.util, "find_spec", lambda name: None if name == "web3" else find_spec(name)
    )
    told = refusal(tmp_path, *RPC, ROOST_FACILITATOR_KEY=KEY)
    assert "python3 scripts/setup.py facilitator" in told


GOOD, BAD = b"good" * 10_000, b"bad" * 10_000


async def keep(folder: Path, *contents: bytes) -> list[File]:
    settings = config.load_settings({}, data=folder)
    db = app.open_database(settings)
    content, files = ContentService(db, app.create_blob_store(settings)), FileService(db)
    owner = await db.write(lambda connection: tenants.ensure_tenant(connection, "acme").id)
    kept: list[File] = []
    for data in contents:
        async with content.receive(V1) as pack:
            await pack.write(data)
            tree = await pack.end_file()
            arrival = NewFile(
                owner, ContentNetwork.PRIVATE, str(tree.cid), tree.size, "text/plain", FileMetadata("[b]name[/b]\n\x1b")
            )
            add = (arrival, pack.pack_id)
            kept.append(await pack.commit(lambda connection, add=add: files.add(connection, *add)))
    db.close()
    return kept


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


def scrub(data: Path, *arguments: str):
    return run("scrub", "--data", str(data), *arguments)


def pack_of(data: Path, content: bytes) -> Path:
    return next(path for path in (data / "blobs").rglob("*") if path.is_file() and path.read_bytes() == content)


def test_all_is_well(data: Path) -> None:
    asyncio.run(keep(data, GOOD))
    for arguments in ((), ("--known",), ("--rate", "1000")):
        done = scrub(data, *arguments)
        assert done.exit_code == 0
        assert done.stdout.startswith("No ")
    assert json.loads(scrub(data, "-o", "json").stdout) == []


def test_damage_that_no_file_has_is_named_too(data: Path) -> None:
    """Snapshots, skills and templates hold packs as files do."""
    settings = config.load_settings({}, data=data)

    async def keep_snapshot() -> None:
        db = app.open_database(settings)
        content = ContentService(db, app.create_blob_store(settings))
        owner = await db.write(lambda connection: tenants.ensure_tenant(connection, "acme").id)
        async with content.receive(V1) as pack:
            await pack.write(BAD)
            await pack.end_file()
            packs = [pack.pack_id]
            await pack.commit(
                lambda connection: hold_packs(connection, "agent/ada", owner, ContentNetwork.PRIVATE, packs)
            )
        db.close()

    asyncio.run(keep_snapshot())
    assert scrub(data).exit_code == 0
    pack_of(data, BAD).write_bytes(BAD[:-1] + b"?")
    for arguments in ((), ("--known",)):
        done = scrub(data, "-o", "json", *arguments)
        assert (done.exit_code, [row["id"] for row in json.loads(done.stdout)]) == (1, ["agent/ada"])
    assert "agent/ada" in scrub(data, "--known").stdout


def test_damaged_files_are_named_until_they_are_restored(data: Path) -> None:
    _, bad = asyncio.run(keep(data, GOOD, BAD))
    path = pack_of(data, BAD)
    path.write_bytes(BAD[:-1] + b"?")
    assert scrub(data, "--known").exit_code == 0
    row = {"tenant": "acme", "network": "private", "id": bad.id, "name": bad.metadata.name, "cid": bad.cid}
    for arguments in ((), ("--known",)):
        done = scrub(data, "-o", "json", *arguments)
        assert (done.exit_code, json.loads(done.stdout)) == (1, [row | {"size": len(BAD)}])
    table = scrub(data, "--known")
    assert bad.id in table.stdout
    assert "\x1b" not in table.stdout
    path.write_bytes(BAD)
    assert scrub(data).exit_code == 0
    assert scrub(data, "--known").exit_code == 0


def test_a_lost_object_is_damage_too(data: Path) -> None:
    (bad,) = asyncio.run(keep(data, BAD))
    pack_of(data, BAD).unlink()
    assert [row["id"] for row in json.loads(scrub(data, "-o", "json").stdout)] == [bad.id]


def migrate(data: Path, **environment: str) -> tuple[int, str, str]:
    """Return the exit code, the output and the error of the command in a process of its own."""
    arguments = [sys.executable, "-m", "roost", "migrate", "--data", str(data)]
    done = subprocess.run(arguments, capture_output=True, text=True, check=False, env=environment, timeout=60)
    return done.returncode, done.stdout, done.stderr


def test_migrate_says_from_where_it_brings_the_database_to_this_version(data: Path) -> None:
    data.mkdir()
    database = Database(f"sqlite:///{data / 'roost.db'}")
    options = Config()
    options.set_main_option("script_location", str(Path(migrations.__file__).parent))
    with database.writer.begin() as connection:
        options.attributes["connection"] = connection
        command.upgrade(options, "0050")
    newest = sorted(file.name[:4] for file in Path(migrations.__file__).parent.glob("versions/[0-9]*.py"))[-1]
    assert migrate(data) == (0, f"Migrated the database from 0050 to {newest}.\n", "")
    assert migrate(data) == (0, f"The database is at {newest} already.\n", "")
    database.run(lambda connection: connection.execute(sa.text("UPDATE alembic_version SET version_num = '9999'")))
    database.close()
    code, output, error = migrate(data)
    assert (code, output, error.count("\n")) == (1, "", 1)
    assert "newer version of Roost" in error


def test_migrate_fails_without_a_folder_or_a_server_of_the_database(data: Path) -> None:
    assert migrate(data)[0] == 2
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    data.mkdir()
    code, output, error = migrate(data, ROOST_DATABASE_URL=f"postgresql://roost:secret@127.0.0.1:{port}/roost")
    assert (code, output, error.count("\n")) == (1, "", 1)
    assert "database is unavailable" in error
    assert "secret" not in error


@pytest.mark.postgres
@pytest.mark.parametrize("dialect", ["postgresql"])
def test_migrate_makes_the_tables_of_a_new_database(data: Path, bare_url: str) -> None:
    data.mkdir()
    code, output, _ = migrate(data, ROOST_DATABASE_URL=bare_url)
    assert (code, output.startswith("Created the database at 0")) == (0, True)
