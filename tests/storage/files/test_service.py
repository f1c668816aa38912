"""Files: found by their tenant only, listed in pages, deleted or expired."""

import asyncio
import threading
from dataclasses import replace
from datetime import timedelta

import pytest
from sqlalchemy import Engine, event

from roost.core import clock
from roost.core.db import Database
from roost.core.page_cursor import InvalidPageToken
from roost.storage.content.errors import ContentNotFound
from roost.storage.content.model import ContentNetwork
from roost.storage.content.unixfs.cid import Cid
from roost.storage.files.model import (
    File,
    FileEvent,
    FileFilter,
    FileMetadata,
    FileNotFound,
    PinFilter,
    check_keyvalues,
)
from roost.storage.files.service import FileService
from tests.storage.meanwhile import ON_POSTGRESQL, run_concurrently
from tests.storage.storage_env import StorageEnv

PRIVATE, PUBLIC = ContentNetwork.PRIVATE, ContentNetwork.PUBLIC


@pytest.fixture
def files(database: Database) -> FileService:
    return FileService(database)


async def add(
    env: StorageEnv,
    files: FileService,
    data: bytes,
    note: FileMetadata | None = None,
    network: ContentNetwork = PRIVATE,
) -> File:
    return await env.file(data, note, network=network, files=files)


async def test_added_found_and_deleted(env: StorageEnv, files: FileService) -> None:
    file = await add(env, files, b"one", FileMetadata("one", {"a": 1}))
    assert await files.get(env.tenant_id, PRIVATE, file.id) == file
    assert await env.reader.read_block(env.scope, Cid.parse(file.cid)) == b"one"
    await files.delete(env.tenant_id, PRIVATE, file.id)
    with pytest.raises(FileNotFound):
        await files.get(env.tenant_id, PRIVATE, file.id)
    with pytest.raises(ContentNotFound):
        await env.reader.read_block(env.scope, Cid.parse(file.cid))


async def test_another_tenant_or_network_has_no_such_file(env: StorageEnv, files: FileService) -> None:
    file = await add(env, files, b"one")
    for tenant, network in ((env.other_id, PRIVATE), (env.tenant_id, PUBLIC)):
        with pytest.raises(FileNotFound):
            await files.get(tenant, network, file.id)
        with pytest.raises(FileNotFound):
            await files.delete(tenant, network, file.id)
        assert await files.list(tenant, network, FileFilter(), None, 10) == ([], None)


async def test_the_same_content_again_is_the_same_file(env: StorageEnv, files: FileService) -> None:
    first = await add(env, files, b"one", FileMetadata("first"))
    second = await add(env, files, b"one", FileMetadata("second"))
    assert (second.id, second.metadata.name, second.is_duplicate, second.created_at) == (
        first.id,
        "first",
        True,
        first.created_at,
    )
    public = await add(env, files, b"one", network=PUBLIC)
    assert (public.id != first.id, public.is_duplicate) == (True, False)


@pytest.mark.parametrize("ascending", [True, False])
async def test_pages_cover_everything_once(env: StorageEnv, files: FileService, ascending: bool) -> None:
    made = [(await add(env, files, str(number).encode())).id for number in range(7)]
    seen: list[str] = []
    token: str | None = None
    while True:
        page, token = await files.list(env.tenant_id, PRIVATE, FileFilter(ascending=ascending), token, 3)
        seen += [file.id for file in page]
        if token is None:
            break
    assert seen == (made if ascending else made[::-1])
    with pytest.raises(InvalidPageToken):
        await files.list(env.tenant_id, PRIVATE, FileFilter(), "nonsense", 3)
    for none in (0, -1):
        assert len((await files.list(env.tenant_id, PRIVATE, FileFilter(), None, none))[0]) == 1


async def test_filters_select_files(env: StorageEnv, files: FileService) -> None:
    one = await add(env, files, b"1", FileMetadata("Alpha_%", {"kind": "a", "n": 1}))
    two = await add(env, files, b"2", FileMetadata("beta", {"kind": "b"}))

    async def found(chosen: FileFilter) -> list[str]:
        return [file.id for file in (await files.list(env.tenant_id, PRIVATE, chosen, None, 10))[0]]

    assert await found(FileFilter(name="alpha")) == [one.id]
    assert await found(FileFilter(name="_%")) == [one.id]
    assert await found(FileFilter(keyvalues={"kind": "b"})) == [two.id]
    assert await found(FileFilter(keyvalues={"kind": "a", "n": 1})) == [one.id]
    assert await found(FileFilter(cid=[two.cid])) == [two.id]
    assert await found(FileFilter(mime_type="image/png")) == []
    assert await found(FileFilter(group_id="null")) == [two.id, one.id]


async def test_a_note_can_be_changed(env: StorageEnv, files: FileService) -> None:
    file = await add(env, files, b"1", FileMetadata("old", {"a": "1"}))
    changed = await files.change(env.tenant_id, PRIVATE, file.id, lambda _: FileMetadata("new", {"b": "2"}))
    assert (
        (await files.get(env.tenant_id, PRIVATE, file.id)).metadata
        == changed.metadata
        == FileMetadata("new", {"b": "2"})
    )
    page, _ = await files.list(env.tenant_id, PRIVATE, FileFilter(keyvalues={"a": "1"}), None, 10)
    assert page == []
    with pytest.raises(FileNotFound):
        await files.change(env.other_id, PRIVATE, file.id, lambda _: FileMetadata("theirs"))


async def test_files_whose_time_is_over_go(env: StorageEnv, files: FileService) -> None:
    over = await add(env, files, b"1", FileMetadata("over", expires_at=clock.utc_now() - timedelta(seconds=1)))
    kept = await add(env, files, b"2", FileMetadata("kept", expires_at=clock.utc_now() + timedelta(hours=1)))
    assert await files.expire() == 1
    with pytest.raises(FileNotFound):
        await files.get(env.tenant_id, PRIVATE, over.id)
    assert await files.get(env.tenant_id, PRIVATE, kept.id)


async def test_who_watches_is_told_inside_the_transaction(env: StorageEnv, files: FileService) -> None:
    told: list[tuple[FileEvent, str, str | None, str | None]] = []
    files.add_listener(
        lambda _, change, file, before: told.append(
            (change, file.id, file.metadata.name, None if before is None else before.metadata.name)
        )
    )
    file = await add(env, files, b"one", FileMetadata("one"))
    await add(env, files, b"one", FileMetadata("again"))
    await files.change(env.tenant_id, PRIVATE, file.id, lambda _: FileMetadata("two"))
    await files.delete(env.tenant_id, PRIVATE, file.id)
    expected = [(FileEvent.ADDED, "one", None), (FileEvent.UPDATED, "two", "one"), (FileEvent.DELETED, "two", None)]
    assert told == [(change, file.id, name, before) for change, name, before in expected]


async def test_one_that_is_deleted_twice_at_once_is_told_of_once(env: StorageEnv, files: FileService) -> None:
    told: list[str] = []
    file = await add(env, files, b"one")
    files.add_listener(lambda _connection, _change, file, _before: told.append(file.id))
    leaving = [files.delete(env.tenant_id, PRIVATE, file.id) for _ in range(4)]
    done = await asyncio.gather(*leaving, return_exceptions=True)
    assert sum(isinstance(one, FileNotFound) for one in done) == 3
    assert told == [file.id]


async def test_a_watch_that_fails_undoes_the_change(env: StorageEnv, files: FileService) -> None:
    file = await add(env, files, b"one")

    def refuse(*_: object) -> None:
        raise RuntimeError

    files.add_listener(refuse)
    with pytest.raises(RuntimeError):
        await files.delete(env.tenant_id, PRIVATE, file.id)
    assert await files.get(env.tenant_id, PRIVATE, file.id) == file


@ON_POSTGRESQL
async def test_of_two_changes_at_once_both_count(env: StorageEnv, files: FileService) -> None:
    file, loop = await add(env, files, b"one", FileMetadata("n")), asyncio.get_running_loop()
    mine, others = (env.tenant_id, PRIVATE, file.id), []

    def change(note: FileMetadata) -> FileMetadata:
        renamed = files.change(*mine, lambda note: replace(note, name="m"))
        others.append(asyncio.wrap_future(run_concurrently(env.db, loop, renamed), loop=loop))
        return replace(note, keyvalues={"a": 1})

    await files.change(*mine, change)
    await asyncio.gather(*others)
    assert (await files.get(*mine)).metadata == FileMetadata("m", {"a": 1})


@ON_POSTGRESQL
async def test_nothing_changes_after_a_delete(env: StorageEnv, files: FileService) -> None:
    file, loop = await add(env, files, b"one", FileMetadata("n")), asyncio.get_running_loop()
    mine, others, told = (env.tenant_id, PRIVATE, file.id), [], []
    files.add_listener(lambda _connection, change, _file, _before: told.append(change))

    def change(note: FileMetadata) -> FileMetadata:
        others.append(asyncio.wrap_future(run_concurrently(env.db, loop, files.delete(*mine)), loop=loop))
        return replace(note, name="m")

    await files.change(*mine, change)
    await asyncio.gather(*others)
    assert told == [FileEvent.UPDATED, FileEvent.DELETED]


@ON_POSTGRESQL
async def test_time_that_is_given_in_the_last_moment_counts(env: StorageEnv, files: FileService) -> None:
    now, loop = clock.utc_now(), asyncio.get_running_loop()
    file = await add(env, files, b"one", FileMetadata("n", expires_at=now))
    mine, others = (env.tenant_id, PRIVATE, file.id), []

    def change(note: FileMetadata) -> FileMetadata:
        others.append(asyncio.wrap_future(run_concurrently(env.db, loop, files.expire()), loop=loop))
        return replace(note, expires_at=now + timedelta(hours=1))

    await files.change(*mine, change)
    assert await asyncio.gather(*others) == [0]
    assert (await files.get(*mine)).metadata.expires_at == now + timedelta(hours=1)


async def test_the_longest_pairs_are_kept(env: StorageEnv, files: FileService) -> None:
    wide = "".join(map(chr, range(0x20000, 0x20000 + 649)))  # repetitive texts would be compressed
    file = await add(env, files, b"one", FileMetadata("n", check_keyvalues({wide[:255]: wide[:395]})))
    found, _ = await files.list(env.tenant_id, PRIVATE, FileFilter(keyvalues=file.metadata.keyvalues), None, 10)
    assert found == [file]


async def test_nobody_waits_for_a_search(env: StorageEnv, files: FileService) -> None:
    threads: set[int] = set()

    def note(*_: object) -> None:
        threads.add(threading.get_ident())

    event.listen(Engine, "before_cursor_execute", note)
    try:
        await files.list(env.tenant_id, PRIVATE, FileFilter(name="n"), None, 10)
        await files.list(env.tenant_id, PRIVATE, FileFilter(), None, 1000)
        await files.list_pins(env.tenant_id, PinFilter(), 10, 0)
        await files.count_files(env.tenant_id, PRIVATE)
    finally:
        event.remove(Engine, "before_cursor_execute", note)
    assert threads
    assert threading.get_ident() not in threads
