"""The lines of the guide and the dashboard for programs, with the real clients.

They work with any resolver, also one that knows no `*.localhost`.
"""

import asyncio
import os
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from roost import config
from roost.app.drivers import create_engines
from roost.drivers.engine.openclaw.install import node_folder
from tests.contract.test_agent_ports import free_range
from tests.dashboard.browser import SOURCE, Visit, chromium, visiting
from tests.support.server import RunningServer, running

pytestmark = [pytest.mark.engine, pytest.mark.timeout(400)]
GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "agent-address.md"
LANGUAGES = {"curl": "", "Python": "python", "TypeScript": "typescript"}
LOCAL = re.compile(r"^    default_headers.*\n|^(import dns|const resolver|resolver\.).*\n", re.MULTILINE)
"""What an address that every resolver knows does not need."""


def lines_of_guide(address: str) -> Mapping[str, str]:
    """Return the guide's lines with an agent's address in place of the example's."""
    found: dict[str, str] = {}
    for title, language in LANGUAGES.items():
        match = re.search(rf"```{language}\n(.*?)\n```", GUIDE.read_text(), re.DOTALL)
        assert match
        text = match[1]
        if ".localhost" not in address:
            text = LOCAL.sub("", text).replace("http://localhost:8642", address)
        port = address.rpartition(":")[2]
        text = text.replace("http://ID.agents.localhost:8642", address).replace("localhost:8642", f"localhost:{port}")
        found[title] = text.replace("ID.agents", address.removeprefix("http://").partition(".localhost")[0])
    return found


async def lines_of_page(visit: Visit, agent: Mapping[str, Any]) -> Mapping[str, str]:
    """Return what the page of the agent shows in its tabs."""
    await visit.open(f"/agents/{agent['agentId']}/overview")
    found: dict[str, str] = {}
    for title in LANGUAGES:
        await visit.page.get_by_role("tab", name=title, exact=True).click()
        found[title] = await visit.page.get_by_role("tabpanel").locator("code").inner_text()
    return found


async def run_lines(lines: Mapping[str, str], token: str, folder: Path) -> Mapping[str, str]:
    """Run the lines as programs, with no proxy and the token in the environment; return what they print."""
    engines = config.load_settings().engines
    folder.mkdir()
    (folder / "node_modules").symlink_to(next(engines.glob("openclaw/*/node_modules")))
    programs = {
        "curl": ("/bin/sh", "client.sh"),
        "Python": (str(next(engines.glob("hermes/*/bin/python"))), "client.py"),
        "TypeScript": (
            str(node_folder(engines) / "bin" / "node"),
            "--disable-warning=ExperimentalWarning",
            "client.mts",
        ),
    }
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "GATEWAY_TOKEN": token}
    printed: dict[str, str] = {}
    for title, argv in programs.items():
        (folder / argv[-1]).write_text(lines[title])
        done = await asyncio.to_thread(
            subprocess.run, argv, cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=False
        )
        assert done.returncode == 0, done.stderr
        printed[title] = done.stdout
    return printed


@pytest.mark.parametrize("engine", ["hermes", "openclaw"])
async def test_lines_below_localhost(tmp_path: Path, engine: str) -> None:
    async with running(tmp_path / "data", engines=create_engines(config.load_settings())) as server:
        await check_lines(server, "agents.localhost", engine, tmp_path)


async def test_lines_at_an_address_that_every_resolver_knows(tmp_path: Path) -> None:
    ports = free_range(1)
    settings: dict[str, Any] = {"ROOST_DOMAIN": "127.0.0.1", "ROOST_AGENT_PORTS": f"{ports[0]}-{ports[-1]}"}
    async with running(tmp_path / "data", engines=create_engines(config.load_settings()), **settings) as server:
        await check_lines(server, "127.0.0.1", "hermes", tmp_path)


async def check_lines(server: RunningServer, host: str, engine: str, folder: Path) -> None:
    client = server.client(server.key(), host)
    answer = await client.post("/v0/agents", json={"name": "Ada", "engine": engine}, timeout=300)
    agent = answer.json()["agent"]
    async with chromium() as browser, visiting(browser, server, role="owner") as visit:
        lines = await lines_of_page(visit, agent)
        assert agent["gatewayToken"] not in await visit.page.content()
    assert lines == lines_of_guide(agent["url"])
    for title, printed in (await run_lines(lines, agent["gatewayToken"], folder / "client")).items():
        assert "scripted" in printed, title


@pytest.mark.parametrize("address", ["http://abc.agents.localhost:8642", "https://abc.agents.example.com"])
def test_the_lines_in_typescript_have_right_types(tmp_path: Path, address: str) -> None:
    packages = next(config.load_settings().engines.glob("openclaw/*/node_modules"))
    (tmp_path / "node_modules").symlink_to(packages)
    (tmp_path / "client.mts").write_text(lines_of_guide(address)["TypeScript"])
    options = (
        "--noEmit",
        "--strict",
        "--skipLibCheck",
        "--module",
        "nodenext",
        "--target",
        "es2022",
        "--types",
        "node",
    )
    node = node_folder(config.load_settings().engines) / "bin" / "node"
    argv = [str(node), str(SOURCE / "node_modules" / "typescript" / "bin" / "tsc"), *options, "client.mts"]
    done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout) == (0, "")
