"""An upload replaces a known damaged pack of the same tenant's file."""

from pathlib import Path

import pytest

from roost.core.db import Database
from roost.storage.content.errors import ContentDamaged
from roost.storage.content.model import ContentNetwork, ContentScope
from roost.storage.content.scrub import ContentScrubber
from roost.storage.content.unixfs.cid import Cid
from roost.storage.content.unixfs.profile import V1
from roost.storage.files.model import File, FileMetadata
from roost.storage.files.service import FileService, NewFile, damaged_content, describe_holders
from tests.storage.cars import blocks_of, encode_car
from tests.storage.storage_env import CONTENT, StorageEnv

PRIVATE = ContentNetwork.PRIVATE


@pytest.fixture
def files(database: Database) -> FileService:
    return FileService(database)


async def add(
    env: StorageEnv, files: FileService, data: bytes = CONTENT, tenant_id: str | None = None
) -> tuple[File, Path]:
    """Return the file, and the path of its bytes."""
    async with env.content.receive(V1) as pack:
        await pack.write(data)
        tree = await pack.end_file()
        arrival = NewFile(
            tenant_id or env.tenant_id, PRIVATE, str(tree.cid), tree.size, "text/plain", FileMetadata("n")
        )
        file = await pack.commit(lambda connection: files.add(connection, arrival, pack.pack_id))
    return file, env.blob(pack.pack_id)


async def read(env: StorageEnv, file: File) -> bytes:
    scope = ContentScope(file.network, file.tenant_id)
    stat = await env.reader.stat(scope, Cid.parse(file.cid))
    return b"".join([piece async for piece in env.reader.stream_file(scope, stat)])


def flip(path: Path, at: int = 4_000_000) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)


async def test_the_same_content_heals_a_damaged_file(env: StorageEnv, files: FileService) -> None:
    first, path = await add(env, files)
    flip(path)
    with pytest.raises(ContentDamaged):
        await read(env, first)
    assert [one async for one in damaged_content(env.db)] == [first]
    await env.content.scrubber.count_damaged()
    assert env.content.scrubber.damaged_packs == 1
    again, _ = await add(env, files)
    assert (again.id, again.created_at, again.is_duplicate) == (first.id, first.created_at, True)
    assert await read(env, first) == CONTENT
    assert [one async for one in damaged_content(env.db)] == []
    await env.content.scrubber.count_damaged()
    assert env.content.scrubber.damaged_packs == 0
    assert await files.quota.usage(env.tenant_id) == (len(CONTENT), None)


async def test_a_whole_one_is_kept_as_it_is(env: StorageEnv, files: FileService) -> None:
    first, path = await add(env, files)
    _, other = await add(env, files)
    other.unlink()
    assert path.exists()
    assert await read(env, first) == CONTENT


async def test_a_car_heals_it_too(env: StorageEnv, files: FileService) -> None:
    first, path = await add(env, files)
    flip(path)
    with pytest.raises(ContentDamaged):
        await read(env, first)
    tree, blocks = blocks_of(V1, CONTENT)
    async with env.content.receive_car() as car:
        await car.write(encode_car([tree.cid], blocks))
        kept = await car.finish()
        arrival = NewFile(env.tenant_id, PRIVATE, str(kept.cid), kept.size, "text/plain", FileMetadata("n"))
        again = await car.commit(lambda connection: files.add(connection, arrival, car.pack_id))
    assert again.id == first.id
    assert await read(env, first) == CONTENT


async def test_another_tenants_stays_as_it_is(env: StorageEnv, files: FileService) -> None:
    mine, path = await add(env, files)
    theirs, other = await add(env, files, tenant_id=env.other_id)
    for one, file in ((path, mine), (other, theirs)):
        flip(one)
        with pytest.raises(ContentDamaged):
            await read(env, file)
    await add(env, files)
    assert await read(env, mine) == CONTENT
    with pytest.raises(ContentDamaged):
        await read(env, theirs)
    assert [one async for one in damaged_content(env.db)] == [theirs]


async def test_whose_it_is_is_told_in_words(
    env: StorageEnv, files: FileService, capsys: pytest.CaptureFixture[str]
) -> None:
    file, path = await add(env, files)
    flip(path)
    await ContentScrubber(env.db, env.content.reader, describe_holders=describe_holders).scrub_due()
    said = "".join(capsys.readouterr())
    for word in (file.id, file.cid, file.tenant_id, "'n'"):
        assert word in said
    described = await env.db.read(lambda connection: describe_holders(connection, ["snapshot/1", f"file/{file.id}"]))
    assert described[0] == "snapshot/1"
    assert file.cid in described[1]
