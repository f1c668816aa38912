"""What comes again takes the place of what is known to be damaged: of that file, and of no other tenant's."""

from pathlib import Path

import pytest

from roost.core.db import Database
from roost.storage.content.errors import ContentDamaged
from roost.storage.content.model import ContentNetwork, ContentScope
from roost.storage.files.damage import damaged_files, describe_holders
from roost.storage.files.model import File, FileMetadata
from roost.storage.files.service import FileService, NewFile
from roost.storage.unixfs.car import write_car
from roost.storage.unixfs.cid import Cid
from roost.storage.unixfs.profile import V1
from tests.storage.cars import blocks_of
from tests.storage.house import CONTENT, House

PRIVATE = ContentNetwork.PRIVATE


@pytest.fixture
def files(database: Database) -> FileService:
    return FileService(database)


async def add(
    place: House, files: FileService, data: bytes = CONTENT, tenant_id: str | None = None
) -> tuple[File, Path]:
    """The file, and where its bytes would be."""
    async with place.content.receive(V1) as pack:
        await pack.write(data)
        tree = await pack.end_file()
        arrival = NewFile(
            tenant_id or place.tenant_id, PRIVATE, str(tree.cid), tree.size, "text/plain", FileMetadata("n")
        )
        file = await pack.commit(lambda connection: files.add(connection, arrival, pack.pack_id))
    return file, place.blob(pack.pack_id)


async def read(place: House, file: File) -> bytes:
    scope = ContentScope(file.network, file.tenant_id)
    stat = await place.reader.stat(scope, Cid.parse(file.cid))
    return b"".join([piece async for piece in place.reader.stream_file(scope, stat)])


def flip(path: Path, at: int = 4_000_000) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)


async def test_the_same_content_heals_a_damaged_file(place: House, files: FileService) -> None:
    first, path = await add(place, files)
    flip(path)
    with pytest.raises(ContentDamaged):
        await read(place, first)
    assert [one.id async for one in damaged_files(place.db)] == [first.id]
    await place.content.scrubber.count_damaged()
    assert place.content.scrubber.damaged_packs == 1
    again, _ = await add(place, files)
    assert (again.id, again.created_at, again.is_duplicate) == (first.id, first.created_at, True)
    assert await read(place, first) == CONTENT
    assert [one.id async for one in damaged_files(place.db)] == []
    await place.content.scrubber.count_damaged()
    assert place.content.scrubber.damaged_packs == 0
    assert await files.quota.usage(place.tenant_id) == (len(CONTENT), None)


async def test_a_whole_one_is_kept_as_it_is(place: House, files: FileService) -> None:
    first, path = await add(place, files)
    _, other = await add(place, files)
    other.unlink()
    assert path.exists()
    assert await read(place, first) == CONTENT


async def test_a_car_heals_it_too(place: House, files: FileService) -> None:
    first, path = await add(place, files)
    flip(path)
    with pytest.raises(ContentDamaged):
        await read(place, first)
    tree, blocks = blocks_of(V1, CONTENT)
    async with place.content.receive_car() as car:
        await car.write(b"".join(write_car([tree.cid], blocks)))
        kept = await car.finish()
        arrival = NewFile(place.tenant_id, PRIVATE, str(kept.cid), kept.size, "text/plain", FileMetadata("n"))
        again = await car.commit(lambda connection: files.add(connection, arrival, car.pack_id))
    assert again.id == first.id
    assert await read(place, first) == CONTENT


async def test_another_tenants_stays_as_it_is(place: House, files: FileService) -> None:
    mine, path = await add(place, files)
    theirs, other = await add(place, files, tenant_id=place.other_id)
    for one, file in ((path, mine), (other, theirs)):
        flip(one)
        with pytest.raises(ContentDamaged):
            await read(place, file)
    await add(place, files)
    assert await read(place, mine) == CONTENT
    with pytest.raises(ContentDamaged):
        await read(place, theirs)
    assert [one.id async for one in damaged_files(place.db)] == [theirs.id]


async def test_whose_it_is_is_told_in_words(
    place: House, files: FileService, capsys: pytest.CaptureFixture[str]
) -> None:
    file, path = await add(place, files)
    flip(path)
    place.content.scrubber.describe_holders = describe_holders
    while await place.content.scrubber.scrub_next():
        pass
    said = "".join(capsys.readouterr())
    for word in (file.id, file.cid, file.tenant_id, "'n'"):
        assert word in said
    described = await place.db.read(lambda connection: describe_holders(connection, ["snapshot/1", f"file/{file.id}"]))
    assert described[0] == "snapshot/1"
    assert file.cid in described[1]
