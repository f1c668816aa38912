"""Every page of an agent on a phone, also for a reader who may change nothing."""

from typing import Any

import pytest
from playwright.async_api import Browser

from tests.dashboard.browser import visiting
from tests.support.server import RunningServer

PAGES = [
    *("logs", "files", "snapshots", "tasks", "skills", "secrets", "channels", "devices", "routes", "config", "settings")
]


@pytest.mark.parametrize("role", ["owner", "viewer"])
async def test_pages_of_an_agent_work_for_each_role(
    browser: Browser, server: RunningServer, agent: dict[str, Any], role: str
) -> None:
    async with visiting(browser, server, "phone", role=role) as visit:
        for name in PAGES:
            await visit.open(f"/agents/{agent['agentId']}/{name}")
            await visit.check()
            await visit.picture(f"{role}-{name}")
