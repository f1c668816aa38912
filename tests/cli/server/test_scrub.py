"""`roost scrub`: all content read again, without a server, and damaged files named with whose they are."""

import asyncio
import json
from pathlib import Path

import pytest

from roost import app, config
from roost.identity import tenants
from roost.storage.content.model import ContentNetwork
from roost.storage.content.service import ContentService, hold_packs
from roost.storage.content.unixfs.profile import V1
from roost.storage.files.model import File, FileMetadata
from roost.storage.files.service import FileService, NewFile
from tests.cli.terminal import run

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
