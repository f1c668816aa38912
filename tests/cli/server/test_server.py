"""`roost api routes`: all endpoints, without a server."""

import asyncio
import json
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import pytest
from typer.testing import CliRunner

from roost import app, config
from roost.cli.main import cli
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
