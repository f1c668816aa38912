"""Handlers, conditions and fixture types for tests of operations."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from datetime import timedelta
from typing import Any

import pytest

from roost.core import clock
from roost.work import ClaimedOperation, Operation, OperationWorker

Add = Callable[..., Coroutine[Any, Any, Operation]]
Start = Callable[..., Awaitable[OperationWorker]]
LONG = 20.0


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(LONG):
        while not condition():
            await asyncio.sleep(0.005)


async def once_failed(loop: OperationWorker, operation_id: str) -> Operation:
    async with asyncio.timeout(LONG):
        while (operation := await loop.wait(operation_id, 0)).failures == 0:
            await asyncio.sleep(0.005)
    return operation


def skip(monkeypatch: pytest.MonkeyPatch, time: timedelta) -> None:
    now = clock.utc_now
    monkeypatch.setattr(clock, "utc_now", lambda: now() + time)


async def echo(claim: ClaimedOperation) -> object:
    return {"got": claim.payload}


class BlockingHandler:
    """Handler that records its calls and waits until it may go on."""

    def __init__(self) -> None:
        self.entered: list[ClaimedOperation] = []
        self.go = asyncio.Event()
        self.cancelled = 0

    async def __call__(self, claim: ClaimedOperation) -> object:
        self.entered.append(claim)
        try:
            await self.go.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        return claim.attempts


class FailingHandler:
    """Handler that raises each of its errors once, and then succeeds."""

    def __init__(self, *errors: BaseException) -> None:
        self.errors = list(errors)
        self.calls = 0

    async def __call__(self, claim: ClaimedOperation) -> object:
        self.calls += 1
        if self.errors:
            raise self.errors.pop(0)
        return "done"
