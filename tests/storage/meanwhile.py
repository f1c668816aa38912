"""Two concurrent transactions in a fixed order."""

import asyncio
import concurrent.futures
import time
from collections.abc import Coroutine
from typing import Any, TypeVar

import pytest
from sqlalchemy import Connection, text

from roost.core.db import Database

T = TypeVar("T")
ON_POSTGRESQL = pytest.mark.parametrize("dialect", [pytest.param("postgresql", marks=pytest.mark.postgres)])
"""SQLite has one writer: nothing happens at once there."""


def run_concurrently(
    db: Database, loop: asyncio.AbstractEventLoop, act: Coroutine[Any, Any, T]
) -> "concurrent.futures.Future[T]":
    """Inside a transaction, begin `act`; return when it is finished or waits for a lock."""
    doing = asyncio.run_coroutine_threadsafe(act, loop)
    deadline = time.monotonic() + 20
    while not doing.done() and not db.run(waiting):
        assert time.monotonic() < deadline
    return doing


def waiting(connection: Connection) -> int:
    """Return the number of transactions that wait for a lock in this database."""
    query = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    return connection.execute(text(query)).scalar_one()
