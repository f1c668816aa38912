"""Equal servers of one cluster are replaced one by one behind a balancer, and no request of their clients fails."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest

from roost.agents.lifecycle.hosts import takeover
from tests.conformance.clusters import running_wardens
from tests.journeys.test_cluster import FETCH, list_pods, serve, until
from tests.support.server import NO_AUTHORITIES, RunningServer

pytestmark = [
    pytest.mark.container,
    pytest.mark.postgres,
    pytest.mark.timeout(300),
    pytest.mark.parametrize("dialect", ["postgresql"]),
]


class Balancer:
    """Sends each request to the next ready server, whose connections it keeps."""

    def __init__(self) -> None:
        self.servers: dict[int, httpx.AsyncClient] = {}
        self.failures: list[str] = []
        self.answered = Counter[tuple[str, int]]()
        self._turn = 0

    def add(self, server: RunningServer) -> None:
        url = f"http://127.0.0.1:{server.port}"
        self.servers[server.port] = httpx.AsyncClient(base_url=url, timeout=60, trust_env=False, verify=NO_AUTHORITIES)

    async def choose(self) -> int:
        """Return the port of a ready server, each in its turn."""
        while True:
            self._turn += 1
            ports = list(self.servers)
            port = ports[self._turn % len(ports)]
            try:
                answer = await self.servers[port].get("/readyz", headers={"Host": "localhost"})
            except httpx.TransportError:
                continue
            if answer.is_success:
                return port

    async def ask(self, kind: str, host: str, token: str, method: str, path: str, **content: Any) -> None:
        port = await self.choose()
        headers = {"Host": f"{host}:{port}", "Authorization": f"Bearer {token}"}
        try:
            answer = await self.servers[port].request(method, path, headers=headers, **content)
        except httpx.TransportError as error:
            self.failures.append(f"{kind} at {port}: {error!r}")
            return
        self.answered[kind, port] += 1
        if not answer.is_success or (kind == "exec" and answer.json()["stdout"] != "200\n"):
            self.failures.append(f"{kind} at {port}: {answer.status_code} {answer.text}")


class Clients:
    """Clients that ask without a pause until `end`, one for each kind of request."""

    def __init__(self, balancer: Balancer, agent: dict[str, Any], key: str) -> None:
        host, token = f"{agent['agentId']}.agents.localhost", agent["gatewayToken"]
        command = {"command": f'/usr/bin/python3 -c "{FETCH}"'}  # by a relay of the agent's server
        chat = {"model": "fake", "messages": [{"role": "user", "content": "Hello"}]}
        ask = balancer.ask
        self._kinds: dict[str, Callable[[str], Awaitable[None]]] = {
            "list": lambda kind: ask(kind, "agents.localhost", key, "GET", "/v0/agents"),
            "exec": lambda kind: ask(kind, host, token, "POST", "/v0/console/exec", json=command),
            "models": lambda kind: ask(kind, host, token, "GET", "/v1/models"),
            "chat": lambda kind: ask(kind, host, token, "POST", "/v1/chat/completions", json=chat),
        }
        self._balancer, self._ends = balancer, False
        self._tasks = [asyncio.create_task(self._go_on(kind)) for kind in self._kinds]

    async def _go_on(self, kind: str) -> None:
        while not self._ends:
            await self._kinds[kind](kind)

    async def have_answers_of(self, port: int) -> bool:
        """Return whether a server has answered each kind."""
        return all(self._balancer.answered[kind, port] for kind in self._kinds)

    async def end(self) -> None:
        self._ends = True
        await asyncio.gather(*self._tasks)


async def test_no_request_fails_while_each_server_is_replaced(
    tmp_path: Path, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(takeover, "_GRACE_SECONDS", 0.0)
    balancer = Balancer()
    async with running_wardens(tmp_path / "pods") as cluster, AsyncExitStack() as rest:
        running: list[tuple[RunningServer, AsyncExitStack]] = []

        async def start(name: str) -> RunningServer:
            stack = await rest.enter_async_context(AsyncExitStack())
            server = await stack.enter_async_context(serve(cluster, tmp_path / name, database_url))
            running.append((server, stack))
            balancer.add(server)
            return server

        first = await start("one")
        await start("two")
        key = first.key()
        answer = await first.client(key).post("/v0/agents", json={"name": "Ada"})
        agent: dict[str, Any] = answer.raise_for_status().json()["agent"]
        pods = list_pods(cluster)
        clients = Clients(balancer, agent, key)
        for name in ("three", "four", "five"):  # the last one replaces one that has replaced another
            new = await start(name)
            await until(lambda port=new.port: clients.have_answers_of(port))
            old, stack = running.pop(0)
            await stack.aclose()
            balancer.answered.clear()
            await until(lambda: clients.have_answers_of(running[0][0].port))
            await balancer.servers.pop(old.port).aclose()
        await clients.end()
        assert balancer.failures == []
        assert list_pods(cluster) == pods
        for client in balancer.servers.values():
            await client.aclose()
