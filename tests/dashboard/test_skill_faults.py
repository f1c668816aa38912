"""A skill that OpenClaw lists and does not use: why is in the API's record, on the command line and on the page."""

import asyncio
import os
import subprocess
from pathlib import Path

import pytest
from playwright.async_api import Browser, expect

from roost import config
from roost.app.drivers import create_engines
from tests.dashboard.browser import visiting
from tests.journeys.server_process import ROOST
from tests.support.server import running

pytestmark = [pytest.mark.engine, pytest.mark.timeout(300)]
FAULT = "OpenClaw does not use it: the program `no-such-program` is missing"
NEEDY = """---
name: needy
description: Needs a program.
metadata: {"openclaw": {"requires": {"bins": ["no-such-program"]}}}
---
Use it.
"""
PLAIN = "---\nname: plain\ndescription: Needs nothing.\n---\nUse it.\n"


async def test_why_the_engine_does_not_use_a_skill_is_shown(browser: Browser, tmp_path: Path) -> None:
    async with running(tmp_path / "data", engines=create_engines(config.load_settings())) as server:
        key = server.key()
        client = server.client(key)
        body = {"name": "Ada", "engine": "openclaw"}
        agent = (await client.post("/v0/agents", json=body, timeout=300)).json()["agent"]["agentId"]
        for text in (NEEDY, PLAIN):
            assert (await client.post("/v0/skills", files={"file": ("SKILL.md", text)})).is_success
        environment = {**os.environ, "ROOST_URL": f"http://localhost:{server.port}", "ROOST_TOKEN": key}

        async def roost(*words: str) -> str:
            done = await asyncio.to_thread(
                subprocess.run, [*ROOST, *words], capture_output=True, text=True, env=environment, check=True
            )
            return done.stdout

        attached = await roost("skills", "attach", "Ada", "needy", "plain")
        assert f"needy 1.0.0: {FAULT}\n" in attached
        assert "plain 1.0.0: its files are in the workspace, and the engine lists it\n" in attached
        assert "OpenClaw does not" in " ".join((await roost("skills", "list", "--agent", "Ada")).split())
        records = (await client.get(f"/v0/agents/{agent}/skills")).json()["skills"]
        told = {one["name"]: (one["loaded"], one["fault"]) for one in records}
        assert told == {"needy": (True, FAULT), "plain": (True, None)}
        async with visiting(browser, server, "phone", role="viewer") as visit:
            await visit.open(f"/agents/{agent}/skills")
            rows = visit.page.get_by_role("list", name="Skills", exact=True).get_by_role("listitem")
            await expect(rows.filter(has_text="needy")).to_contain_text(FAULT)
            await expect(rows.filter(has_text="plain")).not_to_contain_text("OpenClaw does not use it")
            await visit.check()
            await visit.picture("faults")
