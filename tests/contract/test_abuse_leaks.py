"""Tokens are sent in every field and searched in every output: logs, database, processes, errors (A12)."""

import contextlib
import json
import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest

from roost.drivers.engine.contract import GatewayPlan, GatewaySetup
from roost.drivers.engine.fake.driver import FakeEngine
from tests.journeys.server_process import ServerProcess, up
from tests.support.server import running


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    with up(tmp_path / "data", "--no-first-agent", ROOST_LOG_LEVEL="debug") as running:
        yield running


@pytest.mark.engine
def test_no_token_is_in_any_sink(server: ServerProcess) -> None:
    agent = server.create("leaky", "hermes")
    secrets = {"jwt": server.session["token"], "gateway": agent["gatewayToken"]}
    with server.client() as api:
        path = f"/v0/agents/{agent['agentId']}"
        secrets["rotated"] = api.post(f"{path}/gateway-token/rotate").json()["token"]
        secrets["internal"] = _internal_token(api, path)
        answers = list(_plant(server, agent, secrets))
        answers += [api.get(path).text.replace(secrets["rotated"], "", 1), api.get("/v0/agents").text]
        answers.append(api.get(f"{path}/logs").text)
    for name, secret in secrets.items():
        for number, answer in enumerate(answers):
            assert secret not in answer, (name, number)
        assert secret not in server.text(), name
        for place, content in _stored_content(server.data):
            assert secret.encode() not in content, (name, place)
    assert "request" in server.text()  # the output is not empty


class LeakyEngine(FakeEngine):
    """Engine whose gateway prints its whole input, in colours and pieces, and fails."""

    def plan(self, version: str, setup: GatewaySetup) -> GatewayPlan:
        plan = super().plan(version, setup)
        token = setup.token.reveal()
        said = f"{'x' * 16_350}{token}\n\x1b[1m{token}\x1b[0m Bearer {token} ?token={token}"
        return replace(plan, argv=["/bin/sh", "-c", f'cat "$HOME"/.roost/fake/*.json; echo "{said}"; exit 3'])


async def test_token_told_by_a_failing_gateway_stays_inside(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async with running(tmp_path / "data", engines=[LeakyEngine()]) as server:
        api = server.client(server.key())
        failed = await api.post("/v0/agents", json={"name": "a"})
        assert failed.status_code == 500
        agent = failed.json()["agent"]
        path = f"/v0/agents/{agent['agentId']}"
        token = (await server.roost.agents.registry.runtimes.agents.get_internal_token(agent["agentId"])).reveal()
        restarted = await api.post(f"{path}/restart")
        assert (restarted.status_code, restarted.json()) == (500, {"error": "Restart failed"})
        told = [failed.text, restarted.text, (await api.get(path)).text, (await api.get(f"{path}/logs")).text]
        assert "[redacted]" in told[0]
        printed = capsys.readouterr()
        sinks = [
            *_stored_content(tmp_path / "data"),
            *zip("ae", (printed.out, printed.err), strict=True),
            *enumerate(told),
        ]
        for place, content in sinks:
            assert token not in (content if isinstance(content, str) else content.decode(errors="replace")), place
            assert "\x1b[1mrst" not in str(content), place


def _internal_token(api: httpx.Client, path: str) -> str:
    """Return the engine's own token, which the agent can read."""
    command = "grep -raohE 'rst_int_[0-9a-f]{64}' $HOME | head -1"
    found = api.post(f"{path}/console/exec", json={"command": command}).json()["stdout"].strip()
    assert found
    return found


def _plant(server: ServerProcess, agent: dict[str, Any], secrets: dict[str, str]) -> Iterator[str]:
    """Return the responses to requests with a token in every possible field."""
    port = httpx.URL(server.url).port
    hosts = [
        f"{agent['agentId']}.agents.localhost:{port}",
        f"agents.localhost:{port}",
        f"localhost:{port}",
        "evil.example",
    ]
    for name, secret in secrets.items():
        if name == "internal":
            continue
        for host in hosts:
            with httpx.Client(base_url=server.url, headers={"Host": host}, timeout=30, trust_env=False) as client:
                for target in (f"/v0/logs?token={secret}", f"/nothing?token={secret}", f"/v0/agents?token={secret}x"):
                    yield client.get(target).text
                for headers in (
                    {"Authorization": f"Bearer {secret}"},
                    {"Authorization": f"Basic {secret}"},
                    {"Cookie": f"gw_token={secret}", "Referer": f"http://x/?token={secret}"},
                    {"X-Request-Id": secret},
                    {"Authorization": f"Bearer {secret}", "Content-Type": secret},
                ):
                    yield client.get("/v0/nothing", headers=headers).text
                    yield client.post("/v0/agents", headers=headers, content=b"{").text
                for body in (
                    {"name": "a" * 101, "description": secret},
                    {"name": f"<{secret}"},
                    {"name": "a", "engine": secret},
                    {"name": "a", "channels": {secret: {"botToken": secret}}},
                    {"version": secret},
                ):
                    yield client.post("/v0/agents", headers={"Authorization": f"Bearer {secret}"}, json=body).text


def _stored_content(data: Path) -> Iterator[tuple[str, bytes]]:
    for file in (data / "roost.db", data / "roost.db-wal", *data.glob("run/*/container.json")):
        if file.exists():
            yield file.name, file.read_bytes()
    with contextlib.closing(sqlite3.connect(f"file:{data / 'roost.db'}?mode=ro", uri=True)) as database:
        tables = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        for table in tables:
            yield table, json.dumps(database.execute(f"SELECT * FROM {table}").fetchall(), default=repr).encode()
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            yield f"argv of {process.name}", (process / "cmdline").read_bytes()
