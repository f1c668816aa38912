"""Devices connect to an OpenClaw agent at its own address while its owner configures it."""

import json
import os
import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest

from roost.config import load_settings
from roost.drivers.engine.openclaw.install import node_folder
from tests.journeys.openclaw_device import Device, call, greet, open_websocket
from tests.journeys.server_process import ServerProcess, until, up

pytestmark = [pytest.mark.engine, pytest.mark.timeout(300)]

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "devices.md"
NAMES = """
import dns from "node:dns";
const lookup = dns.lookup;
dns.lookup = (name, ...rest) => lookup(name.endsWith(".localhost") ? "localhost" : name, ...rest);
"""
REDACTED = "__OPENCLAW_REDACTED__"
OWN = {"baseUrl": "http://own", "apiKey": "sk-own-secret", "api": "openai-completions", "models": []}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with up(tmp_path_factory.mktemp("up") / "data", "--no-first-agent") as made:
        yield made


@pytest.fixture(scope="module")
def agent(server: ServerProcess) -> dict[str, Any]:
    """Return one agent for all tests, because its start takes seconds."""
    return server.create("Owl", "openclaw")


@pytest.fixture
def client(server: ServerProcess, agent: dict[str, Any]) -> Iterator[httpx.Client]:
    """Return a client of the agent's own address, with its gateway token."""
    with server.agent_client(agent) as made:
        yield made


def connect_device(server: ServerProcess, agent: dict[str, Any], device: Device, **headers: str) -> dict[str, Any]:
    """Return the gateway's response to a device that sends the gateway token in both places, as devices do."""
    host, token = f"{agent['agentId']}.agents.localhost", agent["gatewayToken"]
    address = ("127.0.0.1", int(httpx.URL(server.url).port or 0))
    with open_websocket(host, address, Authorization=f"Bearer {token}", **headers) as opened:
        answer = greet(opened, device, token)
        if answer["ok"]:
            answer["sessions"] = call(opened, "sessions.list", {})
        return answer


def test_the_engines_own_program_follows_the_guide(
    server: ServerProcess, agent: dict[str, Any], client: httpx.Client, tmp_path: Path
) -> None:
    engines, host, port = load_settings().engines, f"{agent['agentId']}.agents.localhost", httpx.URL(server.url).port
    program = next(engines.glob("openclaw/*/node_modules/.bin/openclaw"))
    (tmp_path / "names.mjs").write_text(NAMES)
    lines = GUIDE.read_text().replace("\\\n", "").replace("GATEWAY_TOKEN", agent["gatewayToken"])
    environment = {
        "PATH": f"{node_folder(engines) / 'bin'}:{os.environ['PATH']}",
        "HOME": str(tmp_path),
        "NODE_OPTIONS": f"--import={tmp_path / 'names.mjs'}",
        "OPENCLAW_ALLOW_INSECURE_PRIVATE_WS": "1",
        "OPENCLAW_GATEWAY_TOKEN": agent["gatewayToken"],
    }

    def start(pattern: str) -> subprocess.Popen[str]:
        (line,) = re.findall(rf"npx openclaw@\S+ ({pattern} .*)", lines)
        line = line.replace("wss://ID.agents.example.com", f"ws://{host}:{port}").replace("ID.agents.example.com", host)
        line = line.replace("--port 443 --tls", f"--port {port} --no-tls")
        pipe = subprocess.PIPE
        return subprocess.Popen(
            [program, *shlex.split(line)], env=environment, stdout=pipe, stderr=subprocess.STDOUT, text=True
        )

    assert '"ok": true' in start("gateway call").communicate(timeout=90)[0]
    with start("node run") as node:
        assert node.stdout
        try:
            assert any("device pairing required" in line for line in node.stdout)
        finally:
            node.kill()
    (row,) = [row for row in listed(client)["pending"] if row["displayName"] == "laptop"]
    assert client.post(f"/v0/devices/{row['requestId']}/approve").json()["success"] is True
    assert "laptop" in [row["displayName"] for row in listed(client)["paired"]]


def listed(client: httpx.Client) -> dict[str, Any]:
    answer = client.get("/v0/devices")
    assert answer.status_code == 200, answer.text
    return answer.json()


def config(client: httpx.Client) -> dict[str, Any]:
    return json.loads(client.get("/v0/config").json()["config"])


def with_own_provider(config: dict[str, Any]) -> dict[str, Any]:
    models = config["models"]
    return {**config, "models": {**models, "providers": {**models["providers"], "own": OWN}}}


@pytest.mark.parametrize("headers", [{}, {"X-Forwarded-For": "127.0.0.1"}, {"X-Real-IP": "127.0.0.1"}])
def test_no_device_is_let_in_because_of_our_proxy(
    server: ServerProcess, agent: dict[str, Any], client: httpx.Client, headers: dict[str, str]
) -> None:
    device = Device()
    answer = connect_device(server, agent, device, **headers)
    assert (answer["ok"], answer["error"]["code"]) == (False, "NOT_PAIRED")
    (row,) = [row for row in listed(client)["pending"] if row["deviceId"] == device.id]
    assert row["requestId"] == answer["error"]["details"]["requestId"]
    assert row["remoteIp"] == "192.0.0.8"  # from this machine, but not local to the gateway
    assert (row["clientId"], row["clientMode"], row["role"]) == ("openclaw-ios", "ui", "operator")


def test_a_device_is_approved_and_comes_in(server: ServerProcess, agent: dict[str, Any], client: httpx.Client) -> None:
    device = Device()
    request_id = connect_device(server, agent, device)["error"]["details"]["requestId"]
    assert client.post(f"/v0/devices/{request_id}/approve").json()["success"] is True
    answer = connect_device(server, agent, device)
    assert answer["ok"], answer
    assert answer["sessions"]["ok"], answer
    found = listed(client)
    assert request_id not in [row["requestId"] for row in found["pending"]]
    (row,) = [row for row in found["paired"] if row["deviceId"] == device.id]
    assert row["pairedAt"].endswith("Z")
    again = client.post(f"/v0/devices/{request_id}/approve")
    assert (again.status_code, again.json()) == (404, {"error": "Device request not found"})
    unknown = client.post(f"/v0/devices/{'0' * 8}-0000-4000-8000-{'0' * 12}/approve")
    assert unknown.status_code == 404


def test_all_that_wait_are_approved_by_one_command(server: ServerProcess, agent: dict[str, Any]) -> None:
    devices = [Device(), Device(client="openclaw-android")]
    waiting = {connect_device(server, agent, device)["error"]["details"]["requestId"] for device in devices}
    shown = json.loads(server.roost("devices", "list", "Owl", "-o", "json").stdout)
    assert waiting <= {row["requestId"] for row in shown["pending"]}
    done = server.roost("devices", "approve-all", "Owl", "-o", "json")
    assert waiting <= set(json.loads(done.stdout)["approved"])
    assert all(connect_device(server, agent, device)["ok"] for device in devices)
    assert json.loads(server.roost("devices", "list", "Owl", "-o", "json").stdout)["pending"] == []


def test_the_engines_own_pages_are_a_device_too(
    server: ServerProcess, agent: dict[str, Any], client: httpx.Client
) -> None:
    """A browser has the cookie, and sends the origin of its page."""
    page = client.get("/", headers={"Authorization": "", "Cookie": f"gw_token={agent['gatewayToken']}"})
    assert (page.status_code, "<html" in page.text.lower()) == (200, True)
    origin = f"http://{agent['agentId']}.agents.localhost:{httpx.URL(server.url).port}"
    browser = Device(client="openclaw-control-ui", mode="webchat")
    stranger = connect_device(server, agent, browser, Origin="http://evil.example")
    assert stranger["error"]["details"]["code"] == "CONTROL_UI_ORIGIN_NOT_ALLOWED"
    waiting = connect_device(server, agent, browser, Origin=origin)
    assert waiting["error"]["code"] == "NOT_PAIRED", waiting
    request_id = waiting["error"]["details"]["requestId"]
    assert client.post(f"/v0/devices/{request_id}/approve").status_code == 200
    known = connect_device(server, agent, browser, Origin=origin)
    assert known["error"]["code"] == "UNAVAILABLE", known  # the page must be of the gateway's own build
    assert browser.id in [row["deviceId"] for row in listed(client)["paired"]]


def test_a_wrong_token_waits_nowhere(server: ServerProcess, agent: dict[str, Any], client: httpx.Client) -> None:
    before = listed(client)
    with pytest.raises(Exception, match="401"):
        connect_device(server, {**agent, "gatewayToken": "rst_gw_" + "0" * 64}, Device())
    assert listed(client) == before


def test_the_owner_writes_the_configuration(server: ServerProcess, agent: dict[str, Any], client: httpx.Client) -> None:
    before = config(client)
    assert before["gateway"]["auth"]["password"] == REDACTED
    assert "rst_" not in json.dumps(before)
    theirs = {
        **with_own_provider(before),
        "messages": {"ackReaction": "owl"},
        "gateway": {**before["gateway"], "bind": "lan", "auth": {"mode": "none"}, "trustedProxies": ["0.0.0.0/0"]},
        "logging": {"level": "debug", "file": "/tmp/x"},
        "browser": {"enabled": False, "executablePath": "/tmp/x"},
    }
    theirs["gateway"]["controlUi"] = {"dangerouslyDisableDeviceAuth": True, "allowedOrigins": ["*"]}
    answer = client.put("/v0/config", json={"config": theirs})
    assert answer.status_code == 200, answer.text
    after = config(client)
    assert after["gateway"] == before["gateway"]
    assert after["logging"] == {**before["logging"], "level": "debug"}
    assert after["messages"] == {"ackReaction": "owl"}
    assert after["browser"] == {"enabled": False}
    assert after["models"]["providers"]["own"]["apiKey"] == REDACTED
    device = Device()
    assert connect_device(server, agent, device)["error"]["code"] == "NOT_PAIRED"


def test_configuration_refused_by_the_engine_has_its_words(client: httpx.Client) -> None:
    before = config(client)
    for method, path in (("PUT", "/v0/config"), ("POST", "/v0/config/validate")):
        unreadable = client.request(method, path, json={"config": "{nonsense"})
        assert (unreadable.status_code, unreadable.json()) == (400, {"error": "Invalid JSON"})
        refused = client.request(method, path, json={"config": {"gateway": {"bind": 7}, "nonsense": 1}})
        assert (refused.status_code, refused.json()) == (400, {"error": "Invalid JSON"})
        assert all(words in refused.headers["X-Error-Detail"] for words in ("gateway.bind", "Unrecognized key"))
    assert client.put("/v0/config", json={"config": {"$include": "evil.json5"}}).status_code == 400
    assert config(client) == before
    valid = client.post("/v0/config/validate", json={"config": "{messages: {ackReaction: 'x'},} // JSON5"})
    assert (valid.status_code, valid.json()["valid"]) == (200, True)
    assert client.post("/v0/config/validate").json()["valid"] is True
    assert client.post("/v0/config/validate", json={"config": json.dumps(before)}).json()["valid"] is True
    assert config(client) == before


def test_a_restart_is_no_crash_to_the_engine(client: httpx.Client) -> None:
    """After three crashes in five minutes the engine would disable its channels."""
    assert client.post("/v0/restart").status_code == 200
    ended = {"command": "grep -c 'shutdown completed cleanly' /home/agent/.roost/openclaw/gateway.log"}
    assert int(client.post("/v0/console/exec", json=ended).json()["stdout"]) >= 1


def test_a_write_lives_on_in_a_new_container_of_another_server(
    server: ServerProcess, agent: dict[str, Any], client: httpx.Client
) -> None:
    mine = {**with_own_provider(config(client)), "messages": {"ackReaction": "late"}}
    answer = client.put("/v0/config", json={"config": mine})
    assert answer.status_code == 200, answer.text
    assert server.stop() == 0
    server.start()
    until(lambda: server.agents()[0]["status"] == "running")
    with server.agent_client(agent) as again:
        assert config(again)["messages"] == {"ackReaction": "late"}
        kept = {"command": "cat /home/agent/.openclaw/openclaw.json"}
        assert (
            json.loads(again.post("/v0/console/exec", json=kept).json()["stdout"])["models"]["providers"]["own"] == OWN
        )
        paired = listed(again)["paired"]
        assert paired
        assert again.post("/v0/console/exec", json={"command": "pkill -9 -f [o]penclaw"}).status_code == 200
        for path, message in (("devices", "CLI error"), ("config", "Failed to read config")):
            failed = again.get(f"/v0/{path}")
            assert (failed.status_code, failed.json()) == (500, {"error": message})
