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
