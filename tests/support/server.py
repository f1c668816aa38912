"""A whole server for tests, with real sockets and containers; the engine and the drivers of vectors are fakes."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from inspect import iscoroutine
from pathlib import Path
from typing import Any

import httpx2 as httpx

from roost import app, config
from roost.app.drivers import close_runtimes
from roost.drivers.embedding.contract import EmbeddingModel
from roost.drivers.embedding.fake import FakeEmbeddingModel
from roost.drivers.engine.contract import Engine
from roost.drivers.engine.fake.driver import FakeEngine
from roost.drivers.runtime.contract import Runtime
from roost.drivers.text_extractor.contract import TextExtractor
from roost.drivers.text_extractor.fake import FakeTextExtractor
from roost.http.server.server import open_listener
from roost.identity import tenants
from roost.identity.caller import Plan

NO_AUTHORITIES = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # for clients of plain HTTP: to load others takes 20 ms, 1 MB


@dataclass
class RunningServer:
    """A running server, and clients of it."""

    roost: app.RoostServer
    port: int
    clients: list[httpx.AsyncClient] = field(default_factory=list)

    def key(self, tenant: str = "acme", plan: Plan | None = Plan.PAID, scopes: frozenset[str] = frozenset()) -> str:
        """Return a service JWT."""

        def issue(connection: Any) -> str:
            owner = tenants.ensure_tenant(connection, tenant, plan)
            return self.roost.core.identity.api_keys.issue(connection, owner, "test", scopes=scopes).reveal()

        return self.roost.core.db.run(issue)

    def client(self, token: str | None = None, host: str = "agents.localhost", **options: Any) -> httpx.AsyncClient:
        """Return a client of one address; `host` is without the port."""
        headers = {"Host": f"{host}:{self.port}"} | ({"Authorization": f"Bearer {token}"} if token else {})
        made = httpx.AsyncClient(
            base_url=f"http://127.0.0.1:{self.port}",
            headers=headers,
            timeout=60,
            trust_env=False,
            verify=NO_AUTHORITIES,
            **options,
        )
        self.clients.append(made)
        return made

    def agent_client(self, agent: dict[str, Any]) -> httpx.AsyncClient:
        """Return a client of an agent's own address, with its gateway token."""
        return self.client(agent["gatewayToken"], f"{agent['agentId']}.agents.localhost")


@asynccontextmanager
async def running(
    folder: Path,
    *,
    runtime: Runtime | None = None,
    engines: Sequence[Engine] | None = None,
    text_extractor: TextExtractor | None = None,
    embedding_model: EmbeddingModel | None = None,
    stop: bool = True,
    port: int = 0,
    **environment: str,
) -> AsyncIterator[RunningServer]:
    """Run a server without the skills and templates of the package, unless `ROOST_CATALOGUE` is "true".

    `stop=False` leaves the containers as a crash would; `port=0` takes a free port.
    """
    listener = open_listener("127.0.0.1", port)
    environment = {"ROOST_DATA": str(folder), "ROOST_CATALOGUE": "false", **environment}
    settings = config.load_settings(environment, port=listener.getsockname()[1])
    listeners = [listener, *(open_listener("127.0.0.1", agent_port) for agent_port in settings.agent_ports or ())]
    drivers = app.create_drivers(
        settings,
        runtime=runtime,
        engines=engines or [FakeEngine()],
        text_extractor=text_extractor or FakeTextExtractor(),
        embedding_model=embedding_model or FakeEmbeddingModel(),
    )
    others = asyncio.all_tasks()
    try:
        roost = app.build_server(settings, drivers, app.open_tls_sockets(settings))
        await roost.start()
    except BaseException:
        for opened in listeners:
            opened.close()
        raise
    over = asyncio.Event()
    serving = asyncio.create_task(roost.serve(listeners, over))
    server = RunningServer(roost, settings.port)
    try:
        yield server
    finally:
        for client in server.clients:
            await client.aclose()
        over.set()
        await serving
        if stop:
            await roost.stop()
            free_ballast(folder)
        else:
            await _end_as_a_process(roost, asyncio.all_tasks() - others)


def free_ballast(data: Path) -> None:
    """Give back 64 MB of the disk that a stopped server keeps: hundreds of data folders filled one in a run."""
    (data / "ballast").unlink(missing_ok=True)


async def _end_as_a_process(roost: app.RoostServer, started: set[asyncio.Task[Any]]) -> None:
    """End tasks, sockets and connections of a server, as its process would; nothing is stopped cleanly."""
    package = str(Path(app.__file__).parents[1])
    coroutines = {task: task.get_coro() for task in started}
    own = [task for task, one in coroutines.items() if iscoroutine(one) and one.cr_code.co_filename.startswith(package)]
    for task in own:
        task.cancel()
    await asyncio.gather(*own, return_exceptions=True)
    await roost.agents.registry.relays.close_all()
    await close_runtimes(roost.drivers.runtimes)
    roost.core.close()
