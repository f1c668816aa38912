"""Every engine with a runtime for its gateway, and with files that users and attackers write into its home."""

import asyncio
import functools
import json
import socket
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from roost import config
from roost.core.sensitive import Sensitive
from roost.drivers.engine.contract import Engine, GatewaySetup
from roost.drivers.engine.fake.driver import FakeEngine
from roost.drivers.engine.hermes.driver import Hermes
from roost.drivers.engine.openclaw.driver import OpenClaw
from roost.drivers.runtime.bwrap.driver import BwrapRuntime
from roost.drivers.runtime.contract import ContainerSpec, Runtime
from roost.drivers.runtime.fake import FakeRuntime
from roost.warden_client.client import WardenClient
from roost.warden_client.errors import WardenFileNotFound
from tests.conformance.model_server import MODELS, ModelServer

AGENT = "agent-1"
TOKEN = Sensitive("rst_gw_" + "0123456789abcdef" * 2)
GARBAGE = b"\0\xff{garbage: ["


@dataclass(frozen=True)
class EngineCase:
    """An engine under test.

    kept: a file of the user, its content, and the part of it that a start must preserve.
    hostile: well-formed files with other credentials, other addresses and unknown keys.
    """

    engine: Callable[[Path], Engine]
    runtime: Callable[[Path, Engine], Runtime]
    kept: tuple[str, bytes, bytes]
    garbage: Mapping[str, bytes]
    hostile: Mapping[str, bytes] = field(default_factory=dict[str, bytes])


def _bwrap(folder: Path, engine: Engine) -> Runtime:
    return BwrapRuntime(folder, lambda found: engine.folders(found.version))


FAKE = EngineCase(
    engine=lambda _root: FakeEngine(_free_port()),
    runtime=lambda folder, _engine: FakeRuntime(folder),
    kept=(".roost/fake/settings.json", b'{"mine": "kept"}', b'"mine": "kept"'),
    garbage={".roost/fake/settings.json": GARBAGE},
    hostile={".roost/fake/settings.json": b'{"token": "theirs", "port": 1}'},
)
HERMES = EngineCase(
    engine=Hermes,
    runtime=_bwrap,
    kept=(".hermes/config.yaml", b"# mine\ndisplay: {mine: kept}\n", b"# mine\ndisplay: {mine: kept}\n"),
    garbage={".hermes/config.yaml": GARBAGE, ".hermes/.env": GARBAGE},
    hostile={
        ".hermes/config.yaml": b"""
model: theirs/model
platforms: {api_server: {enabled: false, extra: {host: 0.0.0.0, key: theirs-0123456789abcdef}}}
security: 7
""",
        ".hermes/.env": (
            b"API_SERVER_ENABLED=false\nAPI_SERVER_HOST=0.0.0.0\nAPI_SERVER_PORT=1\nAPI_SERVER_KEY=theirs-0123456789\n"
        ),
    },
)
OPENCLAW = EngineCase(
    engine=OpenClaw,
    runtime=_bwrap,
    kept=(".openclaw/openclaw.json", b"{/* mine */ messages: {ackReaction: 'kept'},}", b'"ackReaction": "kept"'),
    garbage={".openclaw/openclaw.json": GARBAGE},
    hostile={".openclaw/openclaw.json": b'{gateway: {bind: "lan", auth: {mode: "none"}}, nonsense: {a: 1}}'},
)
CASES = [
    pytest.param(FAKE, id="fake"),
    pytest.param(EngineCase(**{**vars(FAKE), "runtime": _bwrap}), id="fake-in-bwrap", marks=pytest.mark.container),
    pytest.param(HERMES, id="hermes", marks=[pytest.mark.container, pytest.mark.engine]),
    pytest.param(OPENCLAW, id="openclaw", marks=[pytest.mark.container, pytest.mark.engine]),
]


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@dataclass
class EngineEnv:
    """An agent's container, a stub of the model gateway, and starting a gateway like the product does."""

    engine: Engine
    warden: WardenClient
    models: ModelServer
    model_port: int

    async def setup(self) -> GatewaySetup:
        existing: dict[str, bytes] = {}
        for path in self.engine.reads:
            try:
                existing[path] = await self.warden.read(path, root="home", limit=1 << 20)
            except WardenFileNotFound:
                continue
        return GatewaySetup(
            agent_id=AGENT,
            name="one",
            origin=f"http://{AGENT}.agents.localhost:8642",
            token=TOKEN,
            model_url=f"http://127.0.0.1:{self.model_port}/v1",
            models=MODELS,
            proxy_url="http://127.0.0.1:8798",
            existing=existing,
        )

    async def start(self) -> float:
        """Start the gateway and return the seconds until it was ready."""
        plan = self.engine.plan(self.engine.default_version, await self.setup())
        for path, content in plan.files.items():
            await self.warden.write(path, content, root="home", mode=0o600)
        begin = time.monotonic()
        await self.warden.start("gateway", plan.argv, env=plan.env, restart=False)
        while not await self.engine.ready(self.warden.dial):
            process = (await self.warden.processes())["gateway"]
            if process.state != "running" or time.monotonic() - begin > self.engine.start_deadline:
                lines = [line.text for line in await self.warden.logs(source="gateway", limit=30)]
                raise AssertionError("\n".join([f"the gateway did not start: {process}", *lines]))
            await asyncio.sleep(0.02)
        return time.monotonic() - begin

    async def request(
        self, method: str, path: str, body: object = None, token: Sensitive[str] = TOKEN
    ) -> tuple[int, str]:
        """Return status and body. With HTTP/1.0 the answer ends with the stream."""
        reader, writer = await self.warden.dial(self.engine.port)
        content = b"" if body is None else json.dumps(body).encode()
        name, value = self.engine.credential(token)
        head = [f"{method} {path} HTTP/1.0", "Host: x", f"{name}: {value.reveal()}", "Content-Type: application/json"]
        head.append("X-Forwarded-For: 192.0.0.8")  # as our edge does
        writer.write("\r\n".join([*head, f"Content-Length: {len(content)}", "", ""]).encode() + content)
        async with asyncio.timeout(60):
            answer = (await reader.read()).decode()
        writer.close()
        return int(answer.split()[1]), answer.partition("\r\n\r\n")[2]

    async def chat(self, *, stream: bool = False, token: Sensitive[str] = TOKEN) -> tuple[int, str]:
        body: dict[str, Any] = {"model": "openclaw", "messages": [{"role": "user", "content": "ping"}]}
        return await self.request("POST", "/v1/chat/completions", {**body, "stream": stream}, token)

    async def listeners(self) -> set[str]:
        """Return the hexadecimal addresses with a listener on the engine's port."""
        tables = await self.warden.exec(["sh", "-c", "cat /proc/net/tcp /proc/net/tcp6"])
        rows = [line.split() for line in tables.stdout.decode().splitlines()]
        return {row[1].split(":")[0] for row in rows if row[3] == "0A" and row[1].endswith(f":{self.engine.port:04X}")}


@asynccontextmanager
async def open_engine_env(case: EngineCase, folder: Path) -> AsyncIterator[EngineEnv]:
    engine = case.engine(config.load_settings().engines)
    engine.install(engine.default_version, lambda _text, _done: None)
    runtime = case.runtime(folder, engine)
    model_port = _free_port() if isinstance(runtime, FakeRuntime) else 8799
    async with AsyncExitStack() as stack:
        models = ModelServer()
        stack.enter_context(closing(await runtime.listen(AGENT, "api", models.serve)))
        software = engine.require(engine.default_version)
        await runtime.start(ContainerSpec(AGENT, software, relays={model_port: "api"}))
        stack.push_async_callback(runtime.delete, AGENT)
        yield EngineEnv(engine, WardenClient(functools.partial(runtime.connect, AGENT)), models, model_port)
