"""`roost apply` and `roost agents show -o yaml` against a whole server with the fake engine."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.drivers.chat_platform.stand_in import TELEGRAM_BOT, FakeTokenApi, platforms
from tests.support.server import RunningServer, running

SKILL = "---\nname: word-count\ndescription: Counts words.\n---\nRun `scripts/count.sh FILE`.\n"
EVERYTHING: dict[str, Any] = {
    "version": 1,
    "secrets": [
        {"name": "LIBRARY_KEY", "value": "${LIBRARY_KEY}"},
        {"name": "LOG_LEVEL", "type": "variable", "value": "on"},
    ],
    "agents": [
        {
            "name": "Ada",
            "description": "Counts,\nand reads: everything",
            "vibe": "1.10",
            "emoji": "🦉",
            "engine": "fake",
            "model": "scripted/scripted",
            "secrets": ["LIBRARY_KEY", "LOG_LEVEL"],
            "skills": ["@roost/json-tools", {"path": "./word-count"}],
            "channels": {"telegram": {"botToken": "${BOT}", "dmPolicy": "pairing", "allowFrom": ["4711"]}},
            "tasks": [
                {"name": "report", "schedule": "0 8 * * 1-5 Europe/Berlin", "prompt": "Write.\nThen read."},
                {"name": "look", "schedule": "every 90m", "prompt": "Look.", "enabled": False, "description": "off"},
            ],
            "routes": [{"path": "/app", "port": 3000}, {"path": "/open/", "port": 3001, "protected": False}],
            "scripts": {"build": "true", "start": "sleep 1000"},
        },
        {"name": "Bob", "secrets": [], "tasks": [{"name": "x", "schedule": "@daily", "prompt": "on"}]},
    ],
}


@pytest.fixture(scope="module")
def fake_platforms() -> Iterator[FakeTokenApi]:
    with platforms() as told:
        told.known.add(TELEGRAM_BOT)
        yield told


@pytest.fixture(scope="module")
async def server(
    tmp_path_factory: pytest.TempPathFactory, fake_platforms: FakeTokenApi
) -> AsyncIterator[RunningServer]:
    folder = tmp_path_factory.mktemp("fleet") / "data"
    async with running(folder, ROOST_CATALOGUE="true", ROOST_TELEGRAM_API=fake_platforms.url) as server:
        yield server


@dataclass
class CommandLine:
    """Runs the command line of one tenant in a folder."""

    server: RunningServer
    token: str
    folder: Path
    environment: dict[str, str] = field(default_factory=dict)

    async def run(self, *arguments: str, file: Any = None, code: int = 0) -> str:
        """Run a command with a file on standard input; return its output and errors."""
        environment = {"ROOST_URL": f"http://127.0.0.1:{self.server.port}", "ROOST_TOKEN": self.token}
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "roost", *arguments),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            cwd=self.folder,
            env={**os.environ, **environment, **self.environment},
        )
        text = file if isinstance(file, str) else yaml.safe_dump(file, allow_unicode=True)
        output, _ = await process.communicate(text.encode())
        assert process.returncode == code, output.decode()
        return output.decode()

    async def apply(self, file: Any, *options: str, code: int = 0) -> str:
        return await self.run("apply", "-f", "-", *options, file=file, code=code)

    async def get(self, path: str) -> Any:
        answer = await self.server.client(self.token).get(path)
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def agent(self, name: str) -> dict[str, Any]:
        found = [one for one in (await self.get("/v0/agents"))["agents"] if one["name"] == name]
        assert len(found) == 1
        return await self.get(f"/v0/agents/{found[0]['agentId']}")


@pytest.fixture
async def shell(server: RunningServer, tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[CommandLine]:
    (tmp_path / "word-count" / "scripts").mkdir(parents=True)
    (tmp_path / "word-count" / "SKILL.md").write_text(SKILL)
    (tmp_path / "word-count" / "scripts" / "count.sh").write_text('#!/bin/sh\nwc -w < "$1"\n')
    shell = CommandLine(server, server.key(request.node.name), tmp_path)
    yield shell
    client = server.client(shell.token)
    for agent in (await shell.get("/v0/agents"))["agents"]:
        await client.delete(f"/v0/agents/{agent['agentId']}")


def changed(file: Any, number: int, **fields: Any) -> Any:
    """Return the file with other fields of one agent."""
    agents = [{**one, **fields} if index == number else one for index, one in enumerate(file["agents"])]
    return {**file, "agents": agents}


async def test_a_fleet_with_everything(shell: CommandLine) -> None:
    missing = await shell.apply(EVERYTHING, code=2)
    assert "Set these environment variables: LIBRARY_KEY, BOT" in missing
    assert (await shell.get("/v0/agents"))["agents"] == []

    shell.environment = {"LIBRARY_KEY": "very-secret", "BOT": TELEGRAM_BOT}
    plan = await shell.apply(EVERYTHING, "--plan")
    assert plan.splitlines() == [
        "+ secret LIBRARY_KEY",
        "+ secret LOG_LEVEL",
        "+ agent Ada",
        "  + attached secret LIBRARY_KEY",
        "  + attached secret LOG_LEVEL",
        "  + channel telegram",
        "  + skill @roost/json-tools 1.0.0 (from the hub)",
        next(line for line in plan.splitlines() if line.startswith("  + skill ./word-count bafy")),
        "  + scripts Ada build, start",
        "  ~ routes Ada: + /app to 3000, + /open to 3001 for anyone",
        "  + task report",
        "  + task look",
        "+ agent Bob",
        "  + task x",
    ]
    await shell.apply(EVERYTHING, "--plan", "--exit-code", code=6)
    assert (await shell.get("/v0/agents"))["agents"] == []

    done = await shell.apply(EVERYTHING)
    assert done.splitlines()[-3:] == ["Applied: secrets", "Applied: Ada", "Applied: Bob"]
    assert "very-secret" not in done
    ada = await shell.agent("Ada")
    assert (ada["agent"]["status"], ada["agent"]["model"]) == ("running", "scripted/scripted")
    assert sorted(skill["name"] for skill in ada["skills"]) == ["json-tools", "word-count"]
    assert await shell.apply(EVERYTHING) == "No changes.\n"

    shell.environment = {}
    assert await shell.apply(EVERYTHING, "--plan", "--exit-code") == "No changes.\n"
    for command in (["show", "Ada"], ["show", "Bob"], ["list"]):
        shown = await shell.run("agents", *command, "-o", "yaml", file="")
        assert "very-secret" not in shown
        assert TELEGRAM_BOT not in shown
        assert await shell.apply(shown, "--plan", "--exit-code") == "No changes.\n", shown


async def test_only_the_difference_is_changed(shell: CommandLine) -> None:
    shell.environment = {"LIBRARY_KEY": "very-secret", "BOT": TELEGRAM_BOT}
    await shell.apply(EVERYTHING)
    before = await shell.agent("Ada")
    (shell.folder / "word-count" / "SKILL.md").write_text(f"{SKILL}More.\n")
    report, look = EVERYTHING["agents"][0]["tasks"]
    file = changed(
        EVERYTHING,
        0,
        description="",
        model="scripted",
        secrets=["LOG_LEVEL"],
        skills=["word-count", "./word-count"][1:],
        channels={"telegram": {"dmPolicy": "open", "allowFrom": []}},
        tasks=[{**report, "schedule": "0 9 * * *"}, {"name": "new", "schedule": "@hourly", "prompt": "New."}],
        scripts={"start": "sleep 2000"},
        routes=[{"path": "/app", "port": 3002}],
    )
    lines = (await shell.apply(file)).splitlines()
    assert lines[:4] == [
        "~ agent Ada: description Counts, and reads: everything -> none, model scripted/scripted -> scripted",
        "  - attached secret LIBRARY_KEY",
        "  ~ channel telegram: dmPolicy pairing -> open, allowFrom 4711 -> none",
        "  - skill @roost/json-tools 1.0.0",
    ]
    assert lines[4].startswith("  ~ skill ./word-count: 1.0.0 -> bafy")
    assert lines[5:] == [
        "  ~ scripts Ada: start",
        "  ~ routes Ada: - /app to 3000, - /open to 3001 for anyone, + /app to 3002",
        "  ~ gateway Ada: restart for LIBRARY_KEY",
        f"  - task {look['name']}",
        "  ~ task report: schedule 0 8 * * 1-5 Europe/Berlin -> 0 9 * * *",
        "  + task new",
        "Applied: Ada",
    ]
    after = await shell.agent("Ada")
    assert (after["agent"]["agentId"], after["agent"]["vibe"]) == (before["agent"]["agentId"], "1.10")
    assert [(skill["name"], skill["version"]) for skill in after["skills"]] == [("word-count", "1.0.1")]
    assert await shell.apply(file) == "No changes.\n"
    assert "Applied: Ada" in await shell.apply(EVERYTHING)
    assert await shell.apply(EVERYTHING) == "No changes.\n"


async def test_one_agent_that_cannot_be_made_does_not_stop_the_others(shell: CommandLine) -> None:
    file = {
        "version": 1,
        "agents": [
            {"name": "Ada", "engine": "nothing"},
            {"name": "Bob", "secrets": ["NOT_THERE"]},
            {"name": "Eve", "skills": ["@nobody/nothing"]},
            {"name": "Joe", "vibe": "calm"},
        ],
    }
    done = await shell.apply(file, code=1)
    assert [agent["name"] for agent in (await shell.get("/v0/agents"))["agents"]] == ["Joe"]
    for line in ("agent Bob: there is no secret NOT_THERE", "agent Eve: neither the library nor the hub has", "Ada: "):
        assert f"Error: {line}" in done
    assert "Applied: Joe" in done
    again = await shell.apply({"version": 1, "agents": [{"name": "Joe", "engine": "other"}]}, "--plan", code=1)
    assert "Error: agent Joe: engine: is fake, and cannot become other" in again


async def test_values_of_secrets(shell: CommandLine) -> None:
    shell.environment = {"LIBRARY_KEY": "one"}
    file = {
        "version": 1,
        "secrets": EVERYTHING["secrets"],
        "agents": [{"name": "Ada", "secrets": ["LIBRARY_KEY", "LOG_LEVEL"]}],
    }
    await shell.apply(file)
    shell.environment = {"LIBRARY_KEY": "two"}
    file["secrets"][1] = {**file["secrets"][1], "value": "debug"}
    assert (await shell.apply(file, "--plan")).splitlines() == [
        "~ secret LOG_LEVEL: another value",
        "~ agent Ada",
        "  ~ gateway Ada: restart for LOG_LEVEL",
    ]
    done = await shell.apply(file, "--update-secrets")
    assert "~ secret LIBRARY_KEY: new value" in done
    assert all(secret["synced"] for secret in (await shell.agent("Ada"))["secrets"])
    found = await shell.server.client(shell.token).post(
        f"/v0/agents/{(await shell.agent('Ada'))['agent']['agentId']}/console/exec",
        json={"command": "echo $LIBRARY_KEY $LOG_LEVEL"},
    )
    assert found.json()["stdout"] == "two debug\n"
    assert await shell.apply(file) == "No changes.\n"


async def test_an_interrupted_apply_is_finished_by_the_next(shell: CommandLine) -> None:
    """Kill the command at several points; the last apply leaves nothing to do, and each agent once."""
    shell.environment = {"LIBRARY_KEY": "very-secret", "BOT": TELEGRAM_BOT}
    for seconds in (0.7, 1.2, 1.7):
        environment = {"ROOST_URL": f"http://127.0.0.1:{shell.server.port}", "ROOST_TOKEN": shell.token}
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "roost", "apply", "-f", "-"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
            cwd=shell.folder,
            env={**os.environ, **environment, **shell.environment},
        )
        try:
            async with asyncio.timeout(seconds):
                await process.communicate(yaml.safe_dump(EVERYTHING).encode())
        except TimeoutError:
            process.kill()
            await process.wait()
    await shell.apply(EVERYTHING)
    assert await shell.apply(EVERYTHING) == "No changes.\n"
    assert sorted(agent["name"] for agent in (await shell.get("/v0/agents"))["agents"]) == ["Ada", "Bob"]


async def test_a_template_and_the_plan_as_json(shell: CommandLine) -> None:
    task = {"name": "own", "schedule": "@daily", "prompt": "Read."}
    rita = {"name": "Rita", "template": "researcher", "skills": []}
    file = {"version": 1, "agents": [rita]}
    plan = json.loads(await shell.apply(file, "--plan", "-o", "json"))
    added = {"action": "add", "kind": "agent", "name": "Rita", "agent": "Rita", "detail": ""}
    assert plan == {"changes": [added], "errors": []}
    await shell.apply(file)
    assert await shell.apply(file) == "No changes.\n"
    shown = await shell.run("agents", "show", "Rita", "-o", "yaml", file="")
    assert yaml.safe_load(shown)["agents"][0]["template"] == "researcher"
    assert len(yaml.safe_load(shown)["agents"][0]["tasks"]) == 1
    assert await shell.apply(shown) == "No changes.\n"
    other = {**rita, "name": "Olga", "tasks": [task]}
    file = {"version": 1, "agents": [other, {"name": "Tom", "template": "telegram-assistant"}]}
    assert "Applied: Tom, which waits for TELEGRAM_BOT_TOKEN" in await shell.apply(file)
    shown = await shell.run("agents", "show", "Olga", "-o", "yaml", file="")
    assert yaml.safe_load(shown)["agents"][0]["tasks"] == [{**task, "schedule": "0 0 * * *"}]
    assert await shell.apply(file) == "No changes.\n"
