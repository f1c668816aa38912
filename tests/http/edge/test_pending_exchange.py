"""Requests for the agents of another server, which passes what arrives there on to a real second one."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from typing import Any

import pytest
from websockets.sync.client import connect

from roost.agents.lifecycle.hosts.agent_servers import AgentLocation
from roost.agents.lifecycle.hosts.model import Host
from roost.agents.network.routes.model import PathRoute
from roost.core.machine.unix_socket import Stream
from roost.drivers.runtime.peer_contract import PeerFailed
from roost.http.stack.rate_limits import RateLimits
from tests.http.edge.support import AGENT, EdgeServer, Wire, echo, request, running_edge

NOW = datetime(2026, 1, 1, tzinfo=UTC)


class KnownServers:
    """Stands for `AgentServers`: the test says which agents are at which servers, and how many look-ups they need."""

    def __init__(self) -> None:
        self.hosts: dict[str, Host] = {}
        self.known: dict[str, AgentLocation] = {}
        self.lookups = self.dials = 0
        self.may_answer = threading.Event()
        self.may_answer.set()

    def recall(self, agent_id: str) -> AgentLocation | None:
        return self.known.get(agent_id)

    async def find(self, agent_id: str) -> AgentLocation:
        self.lookups += 1
        while not self.may_answer.is_set():
            await asyncio.sleep(0.01)
        return AgentLocation(self.hosts.get(agent_id), 0)

    async def dial(self, server: Host) -> Stream:
        self.dials += 1
        host, _, port = (server.address or "").partition(":")
        try:
            return await asyncio.open_connection(host, int(port))
        except OSError:
            raise PeerFailed(f"The server {server.name} does not answer") from None


def host(port: int) -> Host:
    return Host("there", "there", "/data", "session", NOW, NOW, f"127.0.0.1:{port}")


class Deployment:
    """Two servers; `there` takes requests of `here` at a port of its own."""

    def __init__(self, here: EdgeServer, there: EdgeServer, servers: KnownServers, other: KnownServers) -> None:
        self.here, self.there, self.servers, self.other = here, there, servers, other
        self.peer_port = there.on_loop(self._listen(there))
        servers.hosts[AGENT] = host(self.peer_port)
        servers.hosts["other"] = host(1)

    async def _listen(self, edge: EdgeServer) -> int:
        def create() -> Any:
            assert edge.create_protocol is not None
            protocol = edge.create_protocol()
            protocol.is_peer = True
            return protocol

        server = await asyncio.get_running_loop().create_server(create, "127.0.0.1", 0)
        edge.gateways.append(server)
        return server.sockets[0].getsockname()[1]


@pytest.fixture
def deployment() -> Iterator[Deployment]:
    servers, other = KnownServers(), KnownServers()
    with ExitStack() as stack:
        there = stack.enter_context(running_edge(servers=other))
        here = stack.enter_context(running_edge(servers=servers))
        yield Deployment(here, there, servers, other)


@pytest.fixture
def wire(deployment: Deployment) -> Iterator[Wire]:
    with deployment.here.connect() as sock:
        yield Wire(sock)


def platform(target: str, method: str = "GET", headers: str = "") -> bytes:
    return request(target, method=method, host="agents.localhost", headers=headers)


def test_the_other_server_answers_for_a_path_of_its_agent(deployment: Deployment, wire: Wire) -> None:
    wire.send(platform(f"/v0/agents/{AGENT.replace('-', '')}"))  # no agent of another server
    assert wire.reply().body == f"app GET /v0/agents/{AGENT.replace('-', '')} 0".encode()
    deployment.servers.hosts["agentone"] = host(deployment.peer_port)
    wire.send(platform("/v0/agents/agentone/files?path=a", "POST", "Content-Length: 5\r\n") + b"12345")
    reply = wire.reply()
    assert (reply.body, len(deployment.there.records)) == (b"app POST /v0/agents/agentone/files 5", 0)
    record = deployment.here.records[-1]
    assert (record.agent_id, record.path) == ("agentone", "/v0/agents/agentone")


def test_a_gateway_sees_the_client_as_at_its_own_server(deployment: Deployment, wire: Wire) -> None:
    deployment.there.serve(echo)
    forged = "X-Forwarded-For: 9.9.9.9\r\nX-Roost-Hops: 3\r\nX-Request-Id: rq-1\r\nConnection: x-mine\r\nX-Mine: 1\r\n"
    wire.send(request("/p%20q;r//s?a=%2F&b", host=deployment.here.host, headers=forged))
    there = wire.json()
    with deployment.there.connect() as sock:
        direct = Wire(sock)
        direct.send(request("/p%20q;r//s?a=%2F&b", host=deployment.here.host, headers=forged))
        assert sorted(there["headers"]) == sorted(direct.json()["headers"])
    assert deployment.there.uses == [AGENT, AGENT]
    assert deployment.here.uses == []


def test_a_wrong_token_is_refused_by_the_other_server(deployment: Deployment, wire: Wire) -> None:
    deployment.there.serve(echo)
    wire.send(request("/", host=deployment.here.host, token="wrong"))
    assert wire.reply().status == 401


def test_requests_of_one_connection_stay_in_order(deployment: Deployment, wire: Wire) -> None:
    deployment.there.serve(echo)
    deployment.servers.may_answer.clear()
    body = b"4\r\nabcd\r\n0\r\n\r\n"
    chunked = request("/1", method="POST", host=deployment.here.host, headers="Transfer-Encoding: chunked\r\n")
    wire.send(chunked + body + platform("/v0/status") + request("/2", host=deployment.here.host))
    deployment.servers.may_answer.set()
    assert wire.json()["body"] == "abcd"
    assert wire.reply().body == b"app GET /v0/status 0"
    assert wire.json()["line"] == "GET /2 HTTP/1.1"


def test_a_body_waits_within_bounds_until_the_server_is_known(deployment: Deployment, wire: Wire) -> None:
    deployment.servers.may_answer.clear()
    size = 30 << 20
    wire.sock.settimeout(1)
    wire.send(platform("/v0/agents/other2/files", "PUT", f"Content-Length: {size}\r\n"))
    sent = wire.push(bytes(1 << 16), size)
    assert sent < size
    deployment.servers.may_answer.set()
    wire.sock.settimeout(20)
    wire.send(bytes(size - sent))
    assert wire.reply().body == b"app PUT /v0/agents/other2/files %d" % size


def test_many_small_chunks_cost_no_more_than_their_bytes(deployment: Deployment, wire: Wire) -> None:
    deployment.servers.may_answer.clear()
    wire.send(platform("/v0/agents/other2/files", "POST", "Transfer-Encoding: chunked\r\n"))
    wire.send(b"1\r\na\r\n" * 40_000)
    with deployment.here.connect(timeout=5) as sock:
        quick = Wire(sock)
        quick.send(platform("/v0/status"))
        assert quick.reply().body == b"app GET /v0/status 0"
    deployment.servers.may_answer.set()
    wire.send(b"0\r\n\r\n")
    assert wire.reply().body == b"app POST /v0/agents/other2/files 40000"


def test_requests_for_all_agents_of_a_server_share_connections(deployment: Deployment, wire: Wire) -> None:
    for agent in ("agenta", "agentb", "agentc"):
        deployment.servers.hosts[agent] = host(deployment.peer_port)
        wire.send(platform(f"/v0/agents/{agent}/files"))
        assert wire.reply().body == f"app GET /v0/agents/{agent}/files 0".encode()
    assert deployment.servers.dials == 1


def test_visitors_of_a_proxy_on_this_machine_are_counted_by_the_other_server() -> None:
    servers, other = KnownServers(), KnownServers()
    with ExitStack() as stack:
        there = stack.enter_context(running_edge(servers=other, rate_limits=RateLimits(caller_requests=1)))
        here = stack.enter_context(running_edge(servers=servers))
        deployment, wire = Deployment(here, there, servers, other), Wire(stack.enter_context(here.connect()))
        there.serve(echo, f"{AGENT}:3000")
        there.set_routes(PathRoute("/open", 3000, is_protected=False))
        for status in (200, 429):
            wire.send(request("/open", host=deployment.here.host, headers="X-Forwarded-For: 9.9.9.9\r\n"))
            assert wire.reply().status == status


def test_a_name_that_is_too_long_is_no_agent(deployment: Deployment, wire: Wire) -> None:
    wire.send(platform(f"/v0/agents/{'a' * 1000}/files"))
    assert wire.reply().body.startswith(b"app GET /v0/agents/aaaa")
    assert deployment.servers.lookups == 0


def test_a_server_that_does_not_answer_is_a_503(deployment: Deployment, wire: Wire) -> None:
    wire.send(platform("/v0/agents/other/files"))
    reply = wire.reply()
    assert (reply.status, reply.body) == (503, b'{"error":"The agent does not answer"}')


@pytest.mark.parametrize("is_known", [True, False])
def test_a_request_that_was_passed_on_ends_somewhere(deployment: Deployment, wire: Wire, is_known: bool) -> None:
    """Each server believes that the other one has the agent."""
    back = deployment.here.on_loop(deployment._listen(deployment.here))
    deployment.other.hosts["lost"], deployment.servers.hosts["lost"] = host(back), host(deployment.peer_port)
    if is_known:
        deployment.servers.known["lost"] = AgentLocation(host(deployment.peer_port), 0)
        deployment.other.known["lost"] = AgentLocation(host(back), 0)
    wire.send(platform("/v0/agents/lost/files"))
    assert wire.reply().body == b"app GET /v0/agents/lost/files 0"
    assert deployment.servers.lookups + deployment.other.lookups == (3 if is_known else 4)


@pytest.mark.parametrize("target", ["/v0/agents/here/console/stream", "/v0/agents/agentone/console/stream"])
def test_a_websocket_of_the_application_is_served_where_the_agent_is(deployment: Deployment, target: str) -> None:
    deployment.servers.hosts["agentone"] = host(deployment.peer_port)
    url = f"ws://agents.localhost:{deployment.here.port}{target}"
    with connect(url, sock=deployment.here.connect(), proxy=None) as socket:
        assert [*socket] == [f"app {target}"]
