"""Fixtures for operations: workers that stop at the end of the test."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from roost import work
from roost.core.db import Database
from roost.work import Operation, OperationLimits, OperationWorker
from roost.work.claim import OnFailure
from tests.work.scenarios import Add, Start


@pytest.fixture
def add(database: Database) -> Add:
    async def add(kind: str = "k", subject: str = "s", payload: Any = None, **more: Any) -> Operation:
        return await database.write(lambda connection: work.add_operation(connection, kind, subject, payload, **more))

    return add


@pytest.fixture
async def start(database: Database) -> AsyncIterator[Start]:
    """Start a worker with handlers by kind. Start it before there is work: a SQLite database has one worker."""
    loops: list[OperationWorker] = []

    async def start(
        handlers: dict[str, Any],
        *,
        retries: int = 0,
        limits: OperationLimits | None = None,
        on_failure: OnFailure | None = None,
        owner: str = "a",
        **options: Any,
    ) -> OperationWorker:
        loop = OperationWorker(database, owner=owner, **options)
        for kind, handler in handlers.items():
            loop.handle(kind, handler, retries=retries, limits=limits, on_failure=on_failure)
        await loop.start()
        loops.append(loop)
        return loop

    yield start
    for loop in loops:
        await loop.stop(grace=0)
