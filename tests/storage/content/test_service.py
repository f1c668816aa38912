"""Content without a holder is deleted after a day; held content stays."""

from datetime import timedelta

import pytest

from roost.core import clock
from roost.core.db import Connection
from roost.storage.content import service, store
from roost.storage.content.errors import ContentNotFound
from roost.storage.content.model import Pack
from tests.storage.storage_env import CONTENT, StorageEnv


@pytest.fixture
def next_day(monkeypatch: pytest.MonkeyPatch) -> None:
    later = clock.utc_now() + timedelta(days=1, minutes=1)
    monkeypatch.setattr(clock, "utc_now", lambda: later)


async def test_released_packs_are_removed_by_a_sweep(env: StorageEnv, request: pytest.FixtureRequest) -> None:
    gone, (tree,) = await env.keep(CONTENT)
    kept, _ = await env.keep(b"kept", holder="file/2")
    await env.db.write(lambda connection: service.release_packs(connection, "file/1"))
    with pytest.raises(ContentNotFound):
        await env.reader.stat(env.scope, tree.cid)
    assert await env.content.sweep() == 0
    assert env.blob(gone).exists()
    request.getfixturevalue("next_day")
    assert await env.content.sweep() == 1
    assert not env.blob(gone).exists()
    assert env.blob(kept).exists()


async def test_content_deleted_while_read_is_gone_and_not_damaged(
    env: StorageEnv, request: pytest.FixtureRequest
) -> None:
    _, (tree,) = await env.keep(b"one block")
    found = await env.reader.stat(env.scope, tree.cid)
    await env.db.write(lambda connection: service.release_packs(connection, "file/1"))
    request.getfixturevalue("next_day")
    assert await env.content.sweep() == 1
    with pytest.raises(ContentNotFound):
        await anext(env.reader.stream_file(env.scope, found))


@pytest.mark.usefixtures("next_day")
async def test_one_sweep_removes_all_that_nobody_holds(env: StorageEnv) -> None:
    packs = [Pack(f"{number:032x}", 1, clock.utc_now() - timedelta(days=2)) for number in range(101)]

    def fill(connection: Connection) -> None:
        for pack in packs:
            store.add_pack(connection, pack, (), ())

    await env.db.write(fill)
    assert await env.content.sweep() == len(packs)


@pytest.mark.usefixtures("next_day")
async def test_objects_that_are_in_no_index_go(env: StorageEnv) -> None:
    orphan = env.blob("ab" * 16)
    orphan.parent.mkdir(parents=True)
    orphan.write_bytes(b"left by a crash")
    assert await env.content.sweep() == 1
    assert not orphan.exists()
