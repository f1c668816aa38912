"""Maintenance tasks run by themselves, and continue after a failure."""

import asyncio
import time
from collections.abc import Callable
from datetime import timedelta

import pytest

from roost.core import clock
from roost.storage.content import service, store
from roost.storage.content.model import StorageTotals
from roost.storage.content.service import MaintenanceTasks
from tests.storage.storage_env import CONTENT, StorageEnv


async def until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not true():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.02)


async def none_expired() -> int:
    return 0


@pytest.fixture(autouse=True)
def short_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SWEEP_INTERVAL", "EXPIRE_INTERVAL", "SCRUB_INTERVAL", "TOTALS_INTERVAL"):
        monkeypatch.setattr(service, name, timedelta(seconds=0.01))


async def test_it_sweeps_and_checks(env: StorageEnv, monkeypatch: pytest.MonkeyPatch) -> None:
    gone, _ = await env.keep(b"gone")
    kept, _ = await env.keep(CONTENT[:1000], holder="file/2")
    await env.db.write(lambda connection: service.release_packs(connection, "file/1"))
    env.blob(kept).write_bytes(b"?")
    moment = clock.utc_now() + timedelta(days=2)
    monkeypatch.setattr(clock, "utc_now", lambda: moment)
    keeper = MaintenanceTasks(env.db, env.content, none_expired)
    keeper.start()
    await until(lambda: not env.blob(gone).exists() and env.content.scrubber.damaged_packs == 1)
    await keeper.stop()
    await keeper.stop()
    assert env.blob(kept).exists()


async def test_known_damage_is_counted_from_the_beginning(env: StorageEnv) -> None:
    kept, _ = await env.keep(b"hurt")
    now = clock.utc_now()
    await env.db.write(lambda connection: store.mark_checked(connection, [kept], now, damaged=True))
    assert env.content.scrubber.damaged_packs == 0
    keeper = MaintenanceTasks(env.db, env.content, none_expired)
    keeper.start()
    await until(lambda: env.content.scrubber.damaged_packs == 1)
    await keeper.stop()


async def test_it_expires_until_nothing_is_over_and_survives_failures(env: StorageEnv) -> None:
    calls: list[int] = []

    async def expire() -> int:
        calls.append(len(calls))
        if len(calls) == 1:
            raise RuntimeError("the database is away")
        return 3 if len(calls) < 5 else 0

    keeper = MaintenanceTasks(env.db, env.content, expire)
    keeper.start()
    await until(lambda: len(calls) > 6)
    await keeper.stop()
    count = len(calls)
    await asyncio.sleep(0)
    assert len(calls) == count


async def test_it_counts_what_is_stored_and_what_nobody_holds(env: StorageEnv) -> None:
    await env.keep(CONTENT[:1000])
    await env.keep(CONTENT[:300], holder="file/2")
    keeper = MaintenanceTasks(env.db, env.content, none_expired)
    keeper.start()
    await until(lambda: env.content.totals == StorageTotals(1300, 0))
    await env.db.write(lambda connection: service.release_packs(connection, "file/1"))
    await until(lambda: env.content.totals == StorageTotals(1300, 1000))
    await keeper.stop()
