"""One server and one browser for all tests of a file."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from playwright.async_api import Browser

from tests.dashboard.browser import chromium
from tests.support.server import RunningServer, running


@pytest.fixture(scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[RunningServer]:
    async with running(tmp_path_factory.mktemp("d") / "data") as server:
        yield server


@pytest.fixture(scope="module")
async def browser() -> AsyncIterator[Browser]:
    async with chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
async def agent(server: RunningServer) -> dict[str, Any]:
    return (await server.client(server.key()).post("/v0/agents", json={"name": "Ada"})).json()["agent"]
