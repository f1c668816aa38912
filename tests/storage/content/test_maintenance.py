"""A server keeps its content in order by itself, and goes on whatever fails."""

import asyncio
import time
from collections.abc import Callable
from datetime import timedelta

import pytest

from roost.core import clock
from roost.storage.content import maintenance as module
from roost.storage.content import service, store
from roost.storage.content.maintenance import MaintenanceTasks
from roost.storage.content.model import StorageTotals
from tests.storage.house import CONTENT, House


async def until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not true():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.02)


async def none_expired() -> int:
    return 0


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SWEEP_INTERVAL", "EXPIRE_INTERVAL", "SCRUB_INTERVAL", "TOTALS_INTERVAL"):
        monkeypatch.setattr(module, name, timedelta(seconds=0.01))


async def test_it_sweeps_and_checks(place: House, monkeypatch: pytest.MonkeyPatch) -> None:
    gone, _ = await place.keep(b"gone")
    kept, _ = await place.keep(CONTENT[:1000], holder="file/2")
    await place.db.write(lambda connection: service.release_packs(connection, "file/1"))
    place.blob(kept).write_bytes(b"?")
    moment = clock.utc_now() + timedelta(days=2)
    monkeypatch.setattr(clock, "utc_now", lambda: moment)
    keeper = MaintenanceTasks(place.content, none_expired)
    keeper.start()
    await until(lambda: not place.blob(gone).exists() and place.content.scrubber.damaged_packs == 1)
    await keeper.stop()
    await keeper.stop()
    assert place.blob(kept).exists()


async def test_what_was_found_damaged_before_is_known_from_the_beginning(place: House) -> None:
    kept, _ = await place.keep(b"hurt")
    now = clock.utc_now()
    await place.db.write(lambda connection: store.mark_checked(connection, kept, now, damaged=True))
    assert place.content.scrubber.damaged_packs == 0
    keeper = MaintenanceTasks(place.content, none_expired)
    keeper.start()
    await until(lambda: place.content.scrubber.damaged_packs == 1)
    await keeper.stop()


async def test_it_expires_until_nothing_is_over_and_survives_failures(place: House) -> None:
    calls: list[int] = []

    async def expire() -> int:
        calls.append(len(calls))
        if len(calls) == 1:
            raise RuntimeError("the database is away")
        return 3 if len(calls) < 5 else 0

    keeper = MaintenanceTasks(place.content, expire)
    keeper.start()
    await until(lambda: len(calls) > 6)
    await keeper.stop()
    count = len(calls)
    await asyncio.sleep(0)
    assert len(calls) == count


async def test_it_counts_what_is_stored_and_what_nobody_holds(place: House) -> None:
    await place.keep(CONTENT[:1000])
    await place.keep(CONTENT[:300], holder="file/2")
    keeper = MaintenanceTasks(place.content, none_expired)
    keeper.start()
    await until(lambda: place.content.totals == StorageTotals(1300, 0))
    await place.db.write(lambda connection: service.release_packs(connection, "file/1"))
    await until(lambda: place.content.totals == StorageTotals(1300, 1000))
    await keeper.stop()
