"""Uploads become files and folders, as a whole or not at all, within limits."""

import asyncio
from collections.abc import Mapping
from concurrent.futures import Future
from pathlib import Path

import pytest
from sqlalchemy import Connection

from roost.core.db import Database
from roost.drivers.blob.folder_store import FolderStore
from roost.identity import tenants
from roost.identity.caller import Plan
from roost.storage.content.model import ContentNetwork
from roost.storage.content.unixfs.cid import Cid
from roost.storage.content.unixfs.directory import build_folder
from roost.storage.content.unixfs.errors import InvalidEntryName
from roost.storage.content.unixfs.profile import V0, V1
from roost.storage.files.groups import store
from roost.storage.files.groups.model import GroupNotFound
from roost.storage.files.groups.service import GroupService
from roost.storage.files.model import File, FileFilter, FileIdTaken, FileMetadata
from roost.storage.files.service import FileService
from roost.storage.files.uploads import service
from roost.storage.files.uploads.model import (
    InvalidUpload,
    MimeTypeRefused,
    TooManyFiles,
    UploadMetadata,
    UploadRequestLimits,
    UploadTooLarge,
)
from roost.storage.files.uploads.service import UploadService
from tests.storage.cars import blocks_of, encode_car
from tests.storage.meanwhile import ON_POSTGRESQL, run_concurrently
from tests.storage.storage_env import CONTENT, StorageEnv, entry

TREE, BLOCKS = blocks_of(V1, b"in a CAR")
TREE_CAR = encode_car([TREE.cid], BLOCKS)


@pytest.fixture
def uploads(env: StorageEnv, database: Database) -> UploadService:
    limits = {Plan.FREE: 6_000_000, Plan.PAID: 6_000_000}
    return UploadService(database, env.content, FileService(database), limits)


async def send(
    uploads: UploadService, order: UploadRequestLimits, files: Mapping[str, bytes], label: UploadMetadata | None = None
) -> File:
    async with uploads.begin(order) as upload:
        for name, data in files.items():
            for at in range(0, len(data), 100_000):
                await upload.write(data[at : at + 100_000])
            await upload.end_file(name)
        return await upload.finish(label or UploadMetadata())


async def read(env: StorageEnv, cid: str, *path: str) -> bytes:
    stat = (await env.reader.resolve(env.scope, Cid.parse(cid), path))[-1]
    return b"".join([piece async for piece in env.reader.stream_file(env.scope, stat)])


async def test_file_upload_becomes_one_file(env: StorageEnv, uploads: UploadService) -> None:
    file = await send(uploads, UploadRequestLimits(env.tenant_id), {"a.bin": CONTENT})
    assert (file.size, file.number_of_files, file.metadata.name, file.network) == (len(CONTENT), 1, "a.bin", "private")
    assert await read(env, file.cid) == CONTENT


async def test_folder_upload_becomes_one_tree(env: StorageEnv, uploads: UploadService) -> None:
    files = {"top/a.txt": b"a", "top/below/b.txt": b"b", "top/below/c/d.txt": b"", "top/e.bin": CONTENT}
    file = await send(
        uploads, UploadRequestLimits(env.tenant_id), files, UploadMetadata(file_metadata=FileMetadata("mine"))
    )
    assert (file.mime_type, file.number_of_files, file.metadata.name) == ("directory", 4, "mine")
    assert file.size == 2 + len(CONTENT)
    for path, data in files.items():
        assert await read(env, file.cid, *path.split("/")[1:]) == data


async def test_a_folder_with_one_file(env: StorageEnv, uploads: UploadService) -> None:
    wrapped = await send(uploads, UploadRequestLimits(env.tenant_id), {"a.txt": b"a"}, UploadMetadata(wrap=True))
    sent = await send(uploads, UploadRequestLimits(env.tenant_id), {"top/a.txt": b"a"})
    assert (sent.cid, sent.is_duplicate, wrapped.mime_type) == (wrapped.cid, True, "directory")


@pytest.mark.parametrize("files", [(), ("a", "b"), ("x/a", "y/a"), ("x/a", "x/a"), ("x/a", "x/a/b"), ("x/a/b", "x/a")])
async def test_conflicting_paths_are_refused(env: StorageEnv, uploads: UploadService, files: tuple[str, ...]) -> None:
    async def send_empty() -> None:
        async with uploads.begin(UploadRequestLimits(env.tenant_id)) as upload:
            for name in files:
                await upload.end_file(name)
            await upload.finish(UploadMetadata())

    with pytest.raises((InvalidUpload, InvalidEntryName)):
        await send_empty()


async def test_bounds_of_an_upload_leave_no_trace(env: StorageEnv, uploads: UploadService, tmp_path: Path) -> None:
    with pytest.raises(UploadTooLarge):
        await send(uploads, UploadRequestLimits(env.tenant_id), {"a": bytes(6_000_001)})
    with pytest.raises(UploadTooLarge):
        await send(uploads, UploadRequestLimits(env.tenant_id, max_size=3), {"a": b"1234"})
    assert [path for path in (tmp_path / "blobs").rglob("*") if path.is_file()] == []


async def test_types_of_an_upload_are_checked(env: StorageEnv, uploads: UploadService) -> None:
    images = UploadRequestLimits(env.tenant_id, mime_types=["image/*"])
    with pytest.raises(MimeTypeRefused):
        await send(uploads, images, {"a.png": b"no picture"})
    with pytest.raises(MimeTypeRefused):
        await send(uploads, images, {"top/a.png": b"\x89PNG\r\n\x1a\n"})
    assert (await send(uploads, images, {"a": b"\x89PNG\r\n\x1a\n" + bytes(16)})).mime_type == "image/png"


@pytest.mark.parametrize("levels", [20, 30])
async def test_a_small_car_of_something_without_end(env: StorageEnv, uploads: UploadService, levels: int) -> None:
    """Each folder has the one below it twice."""
    tree, blocks = blocks_of(V1, b"again and again")
    for _ in range(levels):
        tree = build_folder(V1, [entry("a", tree), entry("b", tree)])
        blocks += [(node.cid, node.data) for node in tree.nodes]
    car = encode_car([tree.cid], blocks)
    with pytest.raises(UploadTooLarge):
        await send(uploads, UploadRequestLimits(env.tenant_id), {"a.car": car}, UploadMetadata(car=True))


async def test_a_group_that_is_not_there(env: StorageEnv, uploads: UploadService, database: Database) -> None:
    with pytest.raises(GroupNotFound):
        await send(
            uploads,
            UploadRequestLimits(env.tenant_id),
            {"a": b"a"},
            UploadMetadata(file_metadata=FileMetadata(group_id="none")),
        )
    assert await FileService(database).list(env.tenant_id, ContentNetwork.PRIVATE, FileFilter(), None, 10) == (
        [],
        None,
    )


async def test_a_promised_id(env: StorageEnv, uploads: UploadService) -> None:
    """It stays an alias of the file."""
    files, order = FileService(env.db), UploadRequestLimits(env.tenant_id, file_id="promised")
    own = await send(uploads, UploadRequestLimits(env.tenant_id), {"a": b"a"})
    for _ in range(2):
        told = await send(uploads, order, {"b": b"a"})
        assert (told.id, told.metadata.name, told.is_duplicate) == ("promised", "b", False)
    assert (await files.get(env.tenant_id, ContentNetwork.PRIVATE, "promised")).id == own.id
    other = await send(uploads, UploadRequestLimits(env.tenant_id), {"a": b"other"})
    for content in (b"new", b"other"):
        with pytest.raises(FileIdTaken):
            await send(uploads, order, {"a": content})
    await files.delete(env.tenant_id, ContentNetwork.PRIVATE, "promised")
    await send(uploads, UploadRequestLimits(env.tenant_id), {"a": b"a"})
    with pytest.raises(FileIdTaken):
        await send(uploads, order, {"a": b"a"})
    found, _ = await files.list(env.tenant_id, ContentNetwork.PRIVATE, FileFilter(), None, 10)
    assert (len(found), other.id in {file.id for file in found}) == (2, True)
    assert (await send(uploads, UploadRequestLimits(env.tenant_id, file_id="next"), {"a": b"next"})).id == "next"


async def test_a_profile_that_is_told_before(env: StorageEnv, uploads: UploadService) -> None:
    file = await send(uploads, UploadRequestLimits(env.tenant_id, V0), {"a": b"a"})
    assert file.cid.startswith("Qm")
    assert await read(env, file.cid) == b"a"


async def test_the_same_content_twice_at_once(env: StorageEnv, uploads: UploadService) -> None:
    files = await asyncio.gather(*(send(uploads, UploadRequestLimits(env.tenant_id), {"a": b"same"}) for _ in range(8)))
    assert len({file.id for file in files}) == 1
    assert sorted(file.is_duplicate for file in files) == [False, *[True] * 7]


@ON_POSTGRESQL
async def test_a_group_that_goes_meanwhile(env: StorageEnv, uploads: UploadService, database: Database) -> None:
    group, loop = (
        await GroupService(database, FileService(database)).create(
            env.tenant_id, ContentNetwork.PRIVATE, "g", is_public=False
        ),
        asyncio.get_running_loop(),
    )
    sent = send(
        uploads,
        UploadRequestLimits(env.tenant_id),
        {"a": b"a"},
        UploadMetadata(file_metadata=FileMetadata(group_id=group.id)),
    )

    def remove(connection: Connection) -> "Future[File]":
        tenants.lock_tenant(connection, env.tenant_id)
        store.delete_group(connection, group.id)
        return run_concurrently(database, loop, sent)

    waiting = await database.write(remove)
    with pytest.raises(GroupNotFound):
        await asyncio.wrap_future(waiting)


async def test_folders_are_counted_too(
    env: StorageEnv, uploads: UploadService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "FILES_LIMIT", 4)
    assert (
        await send(uploads, UploadRequestLimits(env.tenant_id), {"a/b/1": b"", "a/c/d/2": b""})
    ).number_of_files == 2
    with pytest.raises(TooManyFiles):
        await send(uploads, UploadRequestLimits(env.tenant_id), {"a/b/1": b"", "a/c/d/e/2": b""})


async def test_unreferenced_content_is_removed_at_once(env: StorageEnv, uploads: UploadService) -> None:
    order, blobs = UploadRequestLimits(env.tenant_id), FolderStore(env.folder / "blobs")
    first = await send(uploads, order, {"a": b"same"})
    assert (await send(uploads, order, {"a": b"same"})).is_duplicate
    for label in (
        UploadMetadata(file_metadata=FileMetadata(group_id="none")),
        UploadMetadata(file_metadata=FileMetadata(group_id="none"), car=True),
    ):
        with pytest.raises(GroupNotFound):
            await send(uploads, order, {"a": b"other" if not label.car else TREE_CAR}, label)
    assert len([blob async for blob in blobs.list()]) == 1
    assert await read(env, first.cid) == b"same"
