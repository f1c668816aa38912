"""What the server connects to because an agent asked: by the agent's own egress with its log, or not at all.

Every operation that a gateway token, a platform token or the container opens is called, with the examples of the
description and with addresses in all of their texts, while each connection of the server's process is recorded.
"""

import asyncio
import hashlib
import sys
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any

import httpx2 as httpx
import pytest
from structlog.testing import capture_logs

from tests.architecture.code import ROOT
from tests.conformance.model_server import MODELS, ModelServer
from tests.conformance.name_server import serve_names
from tests.contract.endpoints import fill_path, routes
from tests.drivers.chat_platform.stand_in import TELEGRAM_BOT, platforms
from tests.support.server import RunningServer, running

OUTSIDE = "https://outside.test/ada/reader.git"
DOMAIN = "app.example.com"
CONNECTING = {
    "POST /v0/agents/{agentId}/channels/{channel}": "platform",
    "POST /v0/agents/{agentId}/domains/{domainId}/verify": "names",
    "POST /v0/llm/v1/chat/completions": "models",
}
"""The operations that connect somewhere for an agent, and what to.

Many others reach its model providers: those that start its engine, which lists them, or make it work.
"""
OWNERS = {
    "POST /v0/templates/validate": "outside",
    "POST /v0/templates/branches": "outside",
    "POST /v0/templates/refs": "outside",
    "GET /v0/hub": "registry",
    "GET /v0/hub/{slug}": "registry",
    "POST /v0/hub/{hubSkillId}/install": "registry",
}
"""Operations that connect for the owner alone."""

_recorders: list["ConnectionRecorder"] = []


@dataclass
class ConnectionRecorder:
    """Counts the connections of this process by purpose; those of tests to the server have none."""

    purposes: Mapping[int, str]
    ignored: int
    made: Counter[str] = field(default_factory=Counter[str])

    def audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "socket.getaddrinfo" and arguments[0] not in {"127.0.0.1", b"127.0.0.1"}:
            self.made[f"look-up of {arguments[0]!r}"] += 1
        if event not in {"socket.connect", "socket.sendto"} or not isinstance(arguments[1], tuple):
            return
        if event == "socket.sendto" and arguments[0].getsockname()[1] in self.purposes:
            return  # the answer of the test's name server
        port = arguments[1][1]
        if port not in {self.ignored, 9}:  # a probe that sends nothing connects to port 9
            self.made[self.purposes.get(port, str(arguments[1]))] += 1

    def take(self) -> Counter[str]:
        made, self.made = self.made, Counter()
        return made


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    for recorder in _recorders:
        recorder.audit(event, arguments)


@dataclass
class ConnectionsEnv:
    server: RunningServer
    recorder: ConnectionRecorder
    logs: list[Any]
    ports: Mapping[str, int]
    owner: httpx.AsyncClient
    agent: dict[str, Any]
    known: dict[str, str]
    description: Mapping[str, Any]

    def bodies(self, method: str, path: str) -> Iterator[Any]:
        """Yield the example of an operation, and the same with an address in all texts, and in each of them."""
        operation = self.description.get(path, {}).get(method.lower(), {})
        content = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
        example = content.get("example", {})
        if path.endswith("/{channel}"):
            example = {"botToken": TELEGRAM_BOT}
        if path.startswith("/v0/llm") and method == "POST":
            text = {"messages": [{"role": "user", "content": "hi"}], "input": "hi"}
            yield {"model": MODELS[0], **text}
        yield example
        yield with_addresses(example)
        yield from ({**example, name: OUTSIDE} for name, value in example.items() if isinstance(value, str))

    def target(self, method: str, path: str) -> str:
        """Return the path with known ids, and with addresses in all texts of the query."""
        parameters = self.description.get(path, {}).get(method.lower(), {}).get("parameters", ())
        asked = [one["name"] for one in parameters if one["in"] == "query" and _is_text(one["schema"])]
        filled = fill_path(path, self.known)
        return f"{filled}?{httpx.QueryParams(dict.fromkeys(asked, OUTSIDE))}" if asked == ["q"] else filled

    def told(self) -> Counter[str]:
        """Count the lines of the agent's egress since the last call, by what they were for."""
        lines = [line for line in self.logs if line["event"] == "egress.requested"]
        self.logs.clear()
        assert {(line["agent"], line["decision"]) for line in lines} <= {(self.agent["agentId"], "allowed")}
        purposes = {port: purpose for purpose, port in self.ports.items()}
        return Counter("names" if line["host"] == DOMAIN else purposes[line["port"]] for line in lines)


def with_addresses(value: Any) -> Any:
    if isinstance(value, str):
        return OUTSIDE
    if isinstance(value, list):
        return [with_addresses(one) for one in value]
    return {name: with_addresses(one) for name, one in value.items()} if isinstance(value, dict) else value


def _is_text(schema: Mapping[str, Any]) -> bool:
    return any(one.get("type") == "string" for one in schema.get("anyOf", [schema]))


async def _hang_up(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.close()


@pytest.fixture(scope="module")
async def env(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[ConnectionsEnv]:
    async with AsyncExitStack() as stack:
        fakes = [_hang_up, _hang_up, ModelServer().serve]
        listeners = [await asyncio.start_server(serve, "127.0.0.1", 0) for serve in fakes]
        for listener in listeners:
            stack.callback(listener.close)
        numbers = [listener.sockets[0].getsockname()[1] for listener in listeners]
        ports = dict(zip(("outside", "registry", "models"), numbers, strict=True))
        told = stack.enter_context(platforms())
        names = await stack.enter_async_context(serve_names())
        ports |= {"platform": httpx.URL(told.url).port or 0, "names": names.port}
        registry = f"http://127.0.0.1:{ports['registry']}"
        settings: dict[str, Any] = {
            "ROOST_EGRESS_ALLOW": "127.0.0.0/8",
            "ROOST_EGRESS_HOSTS": f"outside.test=127.0.0.1:{ports['outside']}",
            "ROOST_HUB_REGISTRIES": registry,
            "ROOST_DNS_SERVERS": f"127.0.0.1:{ports['names']}",
            **{f"ROOST_{name}_API": told.url for name in ("TELEGRAM", "SLACK", "DISCORD")},
        }
        folder = tmp_path_factory.mktemp("connections") / "data"
        server = await stack.enter_async_context(running(folder, **settings))
        owner = server.client(server.key())
        agent = (await owner.post("/v0/agents", json={"name": "Ada"})).json()["agent"]
        path = f"/v0/agents/{agent['agentId']}"
        made = (await owner.post(f"{path}/domains", json={"customDomain": DOMAIN, "targetPort": 3000})).json()
        key = hashlib.sha256(registry.encode()).hexdigest()[:8]
        known = {"agentId": agent["agentId"], "domainId": made["domain"]["id"], "channel": "telegram"}
        known |= {"model": MODELS[0], "slug": f"{key}~~reader", "hubSkillId": f"{key}~~reader"}
        provider = {"OPENAI_API_KEY": "sk-0123456789", "OPENAI_BASE_URL": f"http://127.0.0.1:{ports['models']}/v1"}
        secrets = [(await owner.post("/v0/secrets", json={"name": n, "value": v})).json() for n, v in provider.items()]
        attached = {"secretIds": [one["secret"]["id"] for one in secrets]}
        assert (await owner.post(f"{path}/secrets", json=attached)).is_success
        description = (await owner.get("/openapi")).json()["paths"]
        recorder = ConnectionRecorder({port: purpose for purpose, port in ports.items()}, server.port)
        if not any(isinstance(one, ConnectionRecorder) for one in _recorders):
            sys.addaudithook(_audit)
        _recorders.append(recorder)
        stack.callback(_recorders.remove, recorder)
        logs = stack.enter_context(capture_logs())
        yield ConnectionsEnv(server, recorder, logs, ports, owner, agent, known, description)


async def _call(client: httpx.AsyncClient, method: str, target: str, body: Any) -> int:
    """Send a request and return the status, without the rest of a stream that has no end."""
    async with client.stream(method, target, json=body) as answer:
        if answer.headers.get("content-type", "").startswith("text/event-stream"):
            return answer.status_code
        await answer.aread()
        return answer.status_code


async def _walk(env: ConnectionsEnv, client: httpx.AsyncClient, kind: str) -> dict[str, set[str]]:
    """Call every operation that a kind of credential opens; return those in which the server connected, by purpose."""
    found: dict[str, set[str]] = {}
    made_in_all, told_in_all = Counter[str](), Counter[str]()
    operations = [
        key
        for key, row in routes().items()
        if any(one.split()[0] == kind for one in row["credentials"]) or (kind == "relay" and not row["credentials"])
    ]
    for method, path in sorted(operations, key=lambda one: one[0] == "DELETE"):
        if method == "WEBSOCKET":  # terminals, commands, logs and events stay in the container and the server
            continue
        for body in env.bodies(method, path):
            assert await _call(client, method, env.target(method, path), body) != 401, (method, path)
            made, told = env.recorder.take(), env.told()
            made_in_all, told_in_all = made_in_all + made, told_in_all + told
            assert made["models"] == 0 or made_in_all["models"] <= told_in_all["models"]  # its engine works meanwhile
            assert made.keys() - {"models"} <= told.keys(), f"{method} {path}: {made}, and the log has {told}"
            for purpose in made:
                found.setdefault(purpose, set()).add(f"{method} {path}")
    assert len(operations) > 9
    return found


@pytest.mark.parametrize("kind", ["gateway", "platform", "relay"])
async def test_requests_for_an_agent_use_its_own_egress(env: ConnectionsEnv, kind: str) -> None:
    env.recorder.take()
    env.told()
    found = await _walk(env, _client(env, kind, await _platform_token(env)), kind)
    models = found.pop("models", set[str]())
    assert kind == "platform" or "POST /v0/llm/v1/chat/completions" in models
    wanted = {purpose: {name} for name, purpose in CONNECTING.items() if purpose != "models"}
    assert found == (wanted if kind == "gateway" else {})


async def test_the_same_operations_connect_for_the_owner(env: ConnectionsEnv) -> None:
    """Which shows that the recorder would see it if they did so for an agent."""
    for name, purpose in OWNERS.items():
        method, path = name.split()
        env.recorder.take()
        for body in env.bodies(method, path):
            await _call(env.owner, method, env.target(method, path), body)
        assert purpose in env.recorder.take(), name


async def test_an_agent_is_told_what_only_its_owner_may_do(env: ConnectionsEnv) -> None:
    agent = env.server.client(await _platform_token(env))
    refused = [await agent.post(f"/v0/templates/{one}", json={"gitUrl": OUTSIDE}) for one in ("validate", "refs")]
    assert {answer.status_code for answer in refused} == {403}
    for answer in (
        await agent.get(f"/v0/hub/{env.known['slug']}"),
        await agent.post(f"/v0/hub/{env.known['slug']}/install"),
    ):
        message = "Skills of other servers are installed by the agent's owner"
        assert (answer.status_code, answer.json()) == (403, {"error": message})


def test_the_guide_names_each_operation_that_connects() -> None:
    guide = (ROOT / "docs" / "guides" / "egress.md").read_text()
    table = guide.partition("## What the server fetches for an agent\n")[2].partition("\n## ")[0]
    assert [name for name in {*CONNECTING, *OWNERS} if f"`{name}`" not in table] == []


async def _platform_token(env: ConnectionsEnv) -> str:
    return (await env.server.agent_client(env.agent).post("/v0/platform/token")).json()["token"]


def _client(env: ConnectionsEnv, kind: str, token: str) -> httpx.AsyncClient:
    if kind == "gateway":
        return env.server.client(env.agent["gatewayToken"], "localhost")
    if kind == "platform":
        return env.server.client(token)
    (socket,) = env.server.roost.core.settings.data.glob("run/*/out/api")
    client = httpx.AsyncClient(
        base_url="http://127.0.0.1:8799", timeout=60, transport=httpx.AsyncHTTPTransport(uds=str(socket))
    )
    env.server.clients.append(client)
    return client
