"""The order of a server's start."""

import asyncio
import threading
from pathlib import Path

import pytest

from roost.drivers.runtime.fake import FakeRuntime
from roost.storage.content import store
from roost.storage.content.model import StorageTotals
from tests.support.server import running


async def test_the_start_does_not_wait_for_the_maintenance(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, released = threading.Event(), threading.Event()

    def read_all(*_: object) -> StorageTotals:
        begun.set()
        assert released.wait(60)
        return StorageTotals(0, 0)

    monkeypatch.setattr(store, "storage_totals", read_all)
    try:
        async with asyncio.timeout(30), running(tmp_path, runtime=FakeRuntime(tmp_path)):
            assert await asyncio.to_thread(begun.wait, 30)
            released.set()
    finally:
        released.set()


async def test_a_server_whose_agents_no_other_can_serve_hands_nothing_over(tmp_path: Path) -> None:
    async with running(tmp_path, runtime=FakeRuntime(tmp_path)) as server:
        access = server.roost.agents.access
    assert not access.servers.is_leaving
    assert server.roost.http.should_exit
