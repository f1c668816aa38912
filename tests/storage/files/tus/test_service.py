"""Transfers continue at their offset after any order of parts, interruptions and servers."""

import asyncio
import random
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from roost.core import ids
from roost.drivers.blob.drafts import DraftStore
from roost.drivers.blob.folder_store import FolderStore
from roost.identity.caller import Plan
from roost.storage.content.model import ContentNetwork
from roost.storage.content.unixfs.cid import Cid
from roost.storage.content.unixfs.importer import UnixfsImporter
from roost.storage.content.unixfs.profile import PROFILES, V1, get_profile
from roost.storage.files.groups.model import GroupNotFound
from roost.storage.files.model import InvalidFileMetadata, StorageQuotaExceeded
from roost.storage.files.service import FileService
from roost.storage.files.tus import service
from roost.storage.files.tus.model import (
    InvalidTusUpload,
    NewTusUpload,
    TooManyTusUploads,
    TusUpload,
    TusUploadNotFound,
    UploadNotHere,
    UploadOffsetMismatch,
)
from roost.storage.files.tus.service import TusUploadService
from roost.storage.files.uploads.model import InvalidUpload, MimeTypeRefused, UploadTooLarge
from roost.storage.files.uploads.service import UploadService
from tests.storage.storage_env import CONTENT, StorageEnv

LIMIT = 6_000_000


class ConnectionCut(Exception):  # noqa: N818 - an event, not an error
    pass


async def chunks(data: bytes, *, cut: bool = False) -> AsyncIterator[bytes]:
    for at in range(0, len(data), 65_536):
        yield data[at : at + 65_536]
    if cut:
        raise ConnectionCut


@dataclass
class TusEnv:
    env: StorageEnv
    transfers: TusUploadService

    async def begin(self, length: int | None, *, max_size: int | None = None, **fields: str) -> tuple[TusUpload, str]:
        return await self.transfers.begin(NewTusUpload(self.env.tenant_id, ids.new_id(), length, fields, max_size))

    async def add(self, one: tuple[TusUpload, str], offset: int, data: bytes, length: int | None = None) -> TusUpload:
        return await self.transfers.append(one[0].file_id, one[1], offset, chunks(data), length)

    async def find(self, one: tuple[TusUpload, str]) -> TusUpload:
        return await self.transfers.find(one[0].file_id, one[1])

    def drafts(self) -> list[Path]:
        return list((self.env.folder / "drafts").glob("*"))


def opened(env: StorageEnv, drafts: str = "drafts", capacity: int | None = None) -> TusEnv:
    """Open a server on the existing rows and files."""
    uploads = UploadService(
        env.db, env.content, FileService(env.db, dict.fromkeys(Plan, capacity)), dict.fromkeys(Plan, LIMIT)
    )
    blobs = FolderStore(env.folder / "blobs")
    return TusEnv(
        env, TusUploadService(env.db, DraftStore(env.folder / drafts, blobs), env.content, uploads, "http://u")
    )


@pytest.fixture
def dialect() -> str:
    """Use SQLite only; the rows have tests on both databases."""
    return "sqlite"


@pytest.fixture
def tus(env: StorageEnv) -> TusEnv:
    return opened(env)


def cid_of(data: bytes, profile: str = "v1") -> str:
    importer = UnixfsImporter(get_profile(profile))
    importer.update(data)
    return str(importer.finish().cid)


async def content(env: StorageEnv, cid: str) -> bytes:
    stat = await env.reader.stat(env.scope, Cid.parse(cid))
    return b"".join([piece async for piece in env.reader.stream_file(env.scope, stat)])


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("seed", range(3))
async def test_any_parts_with_breaks_and_new_servers_in_between(env: StorageEnv, profile: str, seed: int) -> None:
    chance = random.Random(f"{profile} {seed}")
    data = CONTENT[: chance.randint(1, 3_000_000)]
    tus = opened(env)
    transfer, token = one = await tus.begin(len(data), cid_version=profile, filename="a.bin")
    while transfer.cid is None:
        at = transfer.offset
        part = data[at : at + chance.choice([1, 1000, 262_144, 1_048_577])]
        match chance.choice(["part", "part", "cut", "wrong", "restart"]):
            case "part":
                transfer = await tus.add(one, at, part)
                assert transfer.offset == at + len(part)
            case "cut":
                with pytest.raises(ConnectionCut):
                    await tus.transfers.append(transfer.file_id, token, at, chunks(part, cut=True))
                transfer = await tus.find(one)
                assert at <= transfer.offset <= at + len(part)
            case "wrong":
                with pytest.raises(UploadOffsetMismatch) as told:
                    await tus.add(one, at + 1, part)
                assert told.value.offset == at
            case _:
                tus = opened(env)
                assert (await tus.find(one)).offset == at
    assert transfer.cid == cid_of(data, profile)
    assert await content(env, transfer.cid) == data
    assert tus.drafts() == []
    assert (await tus.find(one)).cid == transfer.cid


async def test_an_empty_file(tus: TusEnv) -> None:
    one = await tus.begin(0)
    assert one[0].is_whole
    assert (await tus.find(one)).cid == cid_of(b"")


async def test_a_part_that_comes_again_is_told_where_it_is(tus: TusEnv) -> None:
    one = await tus.begin(5)
    await tus.add(one, 0, b"he")
    with pytest.raises(UploadOffsetMismatch) as told:
        await tus.add(one, 0, b"he")
    assert (told.value.offset, told.value.cid) == (2, None)
    done = await tus.add(one, 2, b"llo")
    with pytest.raises(UploadOffsetMismatch) as told:
        await tus.add(one, 2, b"llo")
    assert (told.value.offset, told.value.cid) == (5, done.cid)
    assert await tus.add(one, 5, b"ignored") == done


async def test_a_length_that_comes_late(tus: TusEnv) -> None:
    one = await tus.begin(None)
    assert (await tus.add(one, 0, b"hel")).cid is None
    for length in (2, LIMIT + 1):
        with pytest.raises((InvalidTusUpload, UploadTooLarge)):
            await tus.add(one, 3, b"lo", length)
    assert (await tus.add(one, 3, b"l", 5)).length == 5
    with pytest.raises(InvalidTusUpload):
        await tus.add(one, 4, b"o", 6)
    assert (await tus.add(one, 4, b"o", 5)).cid == cid_of(b"hello")


async def test_one_that_ends_where_it_is(tus: TusEnv) -> None:
    one = await tus.begin(None)
    await tus.add(one, 0, b"hello")
    assert (await tus.add(one, 5, b"", 5)).cid == cid_of(b"hello")


@pytest.mark.parametrize(("length", "error"), [(5, InvalidTusUpload), (None, UploadTooLarge)])
async def test_more_than_may_come(tus: TusEnv, length: int | None, error: type[Exception]) -> None:
    one = await tus.begin(length, max_size=5)
    with pytest.raises(error):
        await tus.add(one, 0, b"hello!")
    assert (await tus.find(one)).offset in {0, 5}
    assert not (await tus.find(one)).cid


@pytest.mark.parametrize(
    ("length", "fields", "error"),
    [
        (LIMIT + 1, {}, UploadTooLarge),
        (1, {"filename": ".."}, InvalidUpload),
        (1, {"filename": "a/.."}, InvalidUpload),
        (1, {"network": "ipfs"}, InvalidFileMetadata),
        (1, {"cid_version": "v2"}, InvalidFileMetadata),
        (1, {"group_id": "a\0"}, InvalidFileMetadata),
        (1, {"expires_at": "soon"}, InvalidFileMetadata),
    ],
)
async def test_refused_upload_leaves_no_trace(
    tus: TusEnv, length: int, fields: dict[str, Any], error: type[Exception]
) -> None:
    with pytest.raises(error):
        await tus.begin(length, **fields)
    assert tus.drafts() == []


async def test_there_are_so_many(tus: TusEnv, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "UNFINISHED_LIMIT", 2)
    first = await tus.begin(1)
    await tus.begin(1)
    with pytest.raises(TooManyTusUploads):
        await tus.begin(1)
    assert len(tus.drafts()) == 2
    await tus.add(first, 0, b"a")  # it has become a file
    await tus.begin(1)


async def test_upload_that_cannot_become_a_file_ends(env: StorageEnv, tus: TusEnv) -> None:
    grouped = await tus.begin(1, group_id="none")
    with pytest.raises(GroupNotFound):
        await tus.add(grouped, 0, b"a")
    opening = NewTusUpload(env.tenant_id, ids.new_id(), 1, {}, mime_types=["image/*"])
    text, token = await tus.transfers.begin(opening)
    with pytest.raises(MimeTypeRefused):
        await tus.transfers.append(text.file_id, token, 0, chunks(b"a"))
    for one in (grouped, (text, token)):
        with pytest.raises(TusUploadNotFound):
            await tus.find(one)
    assert tus.drafts() == []


async def test_who_has_another_address_has_nothing(tus: TusEnv) -> None:
    one, other = await tus.begin(1), await tus.begin(1)
    for file_id, token in ((one[0].file_id, other[1]), (other[0].file_id, one[1]), (one[0].file_id, ""), ("x", one[1])):
        with pytest.raises(TusUploadNotFound):
            await tus.transfers.find(file_id, token)
        with pytest.raises(TusUploadNotFound):
            await tus.transfers.append(file_id, token, 0, chunks(b"a"))
        with pytest.raises(TusUploadNotFound):
            await tus.transfers.terminate(file_id, token)


async def test_one_that_was_ended_is_gone_and_its_file_stays(env: StorageEnv, tus: TusEnv) -> None:
    half, whole = await tus.begin(2), await tus.begin(1, network="private")
    await tus.add(half, 0, b"a")
    cid = (await tus.add(whole, 0, b"a")).cid
    for transfer, token in (half, whole):
        await tus.transfers.terminate(transfer.file_id, token)
        with pytest.raises(TusUploadNotFound):
            await tus.transfers.terminate(transfer.file_id, token)
    assert cid is not None
    assert await content(env, cid) == b"a"
    assert tus.drafts() == []


async def test_one_part_at_a_time(tus: TusEnv) -> None:
    one = await tus.begin(4)
    going, let_go = asyncio.Event(), asyncio.Event()

    async def slow() -> AsyncIterator[bytes]:
        yield b"ab"
        going.set()
        await let_go.wait()
        yield b"cd"

    first = asyncio.create_task(tus.transfers.append(one[0].file_id, one[1], 0, slow()))
    await going.wait()
    for attempt in (tus.add(one, 0, b"ab"), tus.transfers.terminate(one[0].file_id, one[1])):
        with pytest.raises(UploadOffsetMismatch):
            await attempt
    assert (await tus.find(one)).cid is None
    let_go.set()
    assert (await first).cid == cid_of(b"abcd")


async def test_two_servers_do_not_both_go_on(env: StorageEnv) -> None:
    """A server cannot overwrite bytes that another one acknowledged."""
    one, other = opened(env), opened(env)
    transfer = await one.begin(4)
    waiting, let_go = asyncio.Event(), asyncio.Event()

    async def slow() -> AsyncIterator[bytes]:
        waiting.set()
        await let_go.wait()
        yield b"xy"

    late = asyncio.create_task(other.transfers.append(transfer[0].file_id, transfer[1], 0, slow()))
    await waiting.wait()
    assert (await one.add(transfer, 0, b"ab")).offset == 2
    let_go.set()
    with pytest.raises(UploadOffsetMismatch):
        await late
    assert (await one.find(transfer)).offset == 2


async def test_a_file_that_is_there_already(env: StorageEnv, tus: TusEnv) -> None:
    first, second = await tus.begin(1, name="first"), await tus.begin(1, name="second")
    assert (await tus.add(first, 0, b"a")).cid == (await tus.add(second, 0, b"a")).cid
    file = await FileService(env.db).get(env.tenant_id, ContentNetwork.PRIVATE, first[0].file_id)
    assert file.metadata.name == "first"


async def test_the_profile_is_of_its_own(tus: TusEnv) -> None:
    assert (await tus.begin(1))[0].profile is V1
    assert [(await tus.begin(1, cid_version=name))[0].profile.name for name in PROFILES] == list(PROFILES)


async def test_a_server_without_the_draft_ends_nothing(env: StorageEnv) -> None:
    mine, other = opened(env), opened(env, drafts="elsewhere")
    transfer, token = one = await mine.begin(5)
    with pytest.raises(ConnectionCut):
        await mine.transfers.append(transfer.file_id, token, 0, chunks(b"hello", cut=True))
    with pytest.raises(UploadNotHere):
        await other.find(one)
    half = await mine.begin(3)
    await mine.add(half, 0, b"a")
    with pytest.raises(UploadNotHere):
        await other.add(half, 1, b"bc")
    assert (await mine.add(half, 1, b"bc")).cid == cid_of(b"abc")
    assert (await mine.find(one)).cid == cid_of(b"hello")


async def test_a_part_that_is_announced_as_too_long_leaves_no_byte(tus: TusEnv) -> None:
    known, deferred = await tus.begin(5), await tus.begin(None, max_size=5)
    for (transfer, token), problem in ((known, InvalidTusUpload), (deferred, UploadTooLarge)):
        await tus.transfers.append(transfer.file_id, token, 0, chunks(b"he"), part_size=2)
        with pytest.raises(problem):
            await tus.transfers.append(transfer.file_id, token, 2, chunks(b"llo!"), part_size=4)
        assert (await tus.find((transfer, token))).offset == 2
    count = len(tus.drafts())
    with pytest.raises(InvalidTusUpload):
        await tus.transfers.begin(NewTusUpload(tus.env.tenant_id, ids.new_id(), 5, {}), 6)
    assert len(tus.drafts()) == count


async def test_quota_is_checked_without_a_declared_length(env: StorageEnv) -> None:
    tus = opened(env, capacity=1_000_000)
    first, second = await tus.begin(None), await tus.begin(None)
    await tus.add(first, 0, CONTENT[:600_000])
    with pytest.raises(StorageQuotaExceeded):
        await tus.add(second, 0, CONTENT[:600_000])
    assert (await tus.find(second)).offset == 0
    await tus.add(second, 0, CONTENT[:400_000])
    with pytest.raises(StorageQuotaExceeded):
        await tus.add(first, 600_000, b"x")


async def test_another_of_the_same_file_ends_the_first(tus: TusEnv) -> None:
    first, token = await tus.begin(5)
    await tus.add((first, token), 0, b"hel")
    second = await tus.transfers.begin(NewTusUpload(first.tenant_id, first.file_id, 5, {}))
    with pytest.raises(TusUploadNotFound):
        await tus.find((first, token))
    assert len(tus.drafts()) == 1
    assert (await tus.add(second, 0, b"hello")).cid == cid_of(b"hello")


async def test_a_length_that_is_told_later_may_be_the_longest(env: StorageEnv) -> None:
    tus = opened(env)
    one, other = await tus.begin(None, max_size=10), await tus.begin(None, max_size=10)
    assert (await tus.add(one, 0, b"", 10)).length == 10
    with pytest.raises(UploadTooLarge):
        await tus.add(other, 0, b"", 11)
