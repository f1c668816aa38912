"""The scrub finds damage, reports its owners, and notices a repair."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import Connection, event

from roost.core import clock
from roost.core.db import insert_many
from roost.storage.content import store
from roost.storage.content.errors import ContentDamaged
from roost.storage.content.scrub import RECHECK_AFTER, ContentScrubber
from roost.storage.content.unixfs.profile import PROFILES, ImportProfile
from tests.storage.cars import EVERY_PROFILE, blocks_of, encode_car, take
from tests.storage.storage_env import CONTENT, StorageEnv


@pytest.fixture
def scrub(env: StorageEnv) -> ContentScrubber:
    return ContentScrubber(env.db, env.reader, rate=1 << 40, busy_share=1)


def flip(env: StorageEnv, pack_id: str, at: int) -> None:
    with env.blob(pack_id).open("r+b") as file:
        file.seek(at)
        byte = file.read(1)[0]
        file.seek(at)
        file.write(bytes((byte ^ 1,)))


def advance_clock(monkeypatch: pytest.MonkeyPatch, by: timedelta) -> None:
    moment = clock.utc_now() + by
    monkeypatch.setattr(clock, "utc_now", lambda: moment)


@EVERY_PROFILE
async def test_each_pack_is_checked_once_in_a_while(
    env: StorageEnv, scrub: ContentScrubber, profile: ImportProfile, monkeypatch: pytest.MonkeyPatch
) -> None:
    await env.keep(CONTENT, b"small", b"", profile=profile)
    tree, blocks = blocks_of(profile, b"in a CAR")
    await take(env, encode_car([tree.cid], blocks))
    assert await scrub.scrub_due() == 2
    assert scrub.damaged_packs == 0
    assert await scrub.scrub_due() == 0
    advance_clock(monkeypatch, RECHECK_AFTER + timedelta(seconds=1))
    assert await scrub.scrub_due() == 2


@pytest.mark.parametrize("dialect", ["sqlite"])
@pytest.mark.parametrize("profile", PROFILES.values(), ids=PROFILES)
@pytest.mark.parametrize("at", [0, 4_999_999, 5_000_003])
async def test_a_flipped_bit_is_found_and_told(
    env: StorageEnv, scrub: ContentScrubber, profile: ImportProfile, at: int, capsys: pytest.CaptureFixture[str]
) -> None:
    await env.keep(CONTENT[:9000], profile=profile, holder="file/whole")
    pack_id, _ = await env.keep(CONTENT, b"small", profile=profile, holder="file/broken")
    flip(env, pack_id, at)
    await scrub.scrub_due()
    assert scrub.damaged_packs == 1
    said = capsys.readouterr()
    assert pack_id in said.out + said.err
    assert "file/broken" in said.out + said.err
    assert "file/whole" not in said.out + said.err


def fill_packs(connection: Connection, tenant_id: str, count: int) -> None:
    pack = {"size": 0, "damaged": False, "created_at": 0, "checked_at": None}
    hold = {"holder": "file/1", "tenant_id": tenant_id, "network": "private"}
    insert_many(connection, store.packs, [{**pack, "id": f"{number:032x}"} for number in range(count)])
    insert_many(connection, store.holds, [{**hold, "pack_id": f"{number:032x}"} for number in range(count)])


@pytest.mark.parametrize("dialect", ["sqlite"])
async def test_a_scrub_of_many_packs_writes_seldom_and_reads_nothing_on_the_loop(
    env: StorageEnv, scrub: ContentScrubber, monkeypatch: pytest.MonkeyPatch
) -> None:
    await env.db.write(lambda connection: fill_packs(connection, env.tenant_id, 1_250))
    write, writes = env.db.write, list[int]()

    async def count_write(fn: Callable[[Connection], object]) -> object:
        writes.append(scrub.due_packs)
        return await write(fn)

    monkeypatch.setattr(env.db, "write", count_write)
    monkeypatch.setattr(env.db, "read", None)
    assert await scrub.scrub_due() == 1_250
    assert writes == [*range(1_150, 49, -100), 0]  # progress, with an end
    assert await scrub.scrub_due() == 0


@pytest.mark.parametrize("dialect", ["sqlite"])
def test_due_packs_are_found_by_indexes(env: StorageEnv) -> None:
    now = clock.utc_now()

    def explain(connection: Connection) -> list[str]:
        statements: list[tuple[str, Any]] = []
        event.listen(connection, "before_cursor_execute", lambda *args: statements.append((args[2], args[3])))
        store.list_unchecked(connection, now, (None, ""), 9)
        store.list_unchecked(connection, now, (now, ""), 9)
        store.count_unchecked(connection, now)
        store.count_damaged(connection)
        return [row[3] for text, values in statements[:] for row in _plan(connection, text, values)]

    plan = env.db.run(explain)
    assert sum("ix_packs_checked_at_id" in step for step in plan) == 5
    assert any("ix_packs_damaged" in step for step in plan)
    assert not [step for step in plan if "B-TREE" in step or step == "SCAN packs"]


def _plan(connection: Connection, statement: str, values: Any) -> list[Any]:
    return list(connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", values))


async def test_a_lost_object_is_found(env: StorageEnv, scrub: ContentScrubber) -> None:
    pack_id, _ = await env.keep(CONTENT)
    env.blob(pack_id).unlink()
    await scrub.scrub_due()
    assert scrub.damaged_packs == 1


async def test_restored_pack_is_whole_again(
    env: StorageEnv, scrub: ContentScrubber, monkeypatch: pytest.MonkeyPatch
) -> None:
    pack_id, (tree,) = await env.keep(CONTENT)
    flip(env, pack_id, 77)
    await scrub.scrub_due()
    stat = await env.reader.stat(env.scope, tree.cid)
    with pytest.raises(ContentDamaged):
        _ = [piece async for piece in env.reader.stream_file(env.scope, stat)]
    flip(env, pack_id, 77)
    advance_clock(monkeypatch, RECHECK_AFTER + timedelta(seconds=1))
    await scrub.scrub_due()
    assert scrub.damaged_packs == 0
