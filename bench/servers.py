"""Requests at one and at three servers of one PostgreSQL, where each server may use the same part of a processor.

A machine with few processors cannot run three servers at full speed. So each has a control group with a quota, small
enough that clients, PostgreSQL and containers have what they want: the servers are the bottleneck, as on machines of
their own. This shows what servers cost each other. It does not show where PostgreSQL or the network would become the
bottleneck; for that, the processor time of PostgreSQL for each request is a row.
"""

import asyncio
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2 as httpx
import uvloop

from bench.load import send_requests
from bench.memory import FAKE_SERVER
from bench.process_tree import find_descendants
from bench.processes import cpu_seconds
from bench.row import Row
from bench.timing import RUNS
from roost.drivers.runtime.bwrap.cgroup import locate_controllers, remove_groups
from tests.conformance.s3_server import create_client, s3_server
from tests.journeys.server_process import ServerProcess, up
from tests.support.acme import find_free_ports
from tests.support.databases import postgres_copy, run_postgres

_SERVERS, _SHARE = 3, 0.25
_PERIOD = 20_000
"""Microseconds, a fifth of the kernel's default: a server waits for 15 ms at most."""
_LISTS, _MODELS, _CONNECTIONS = 108, 450, 9
"""To each server in a run."""
_FORWARDED = (
    "A request to a server that does not have the agent is passed on to the one that has it, and so costs both: with "
    "three servers that is true of two requests in three. A balancer that knows the agents' servers spares it: the row "
    "before."
)


@dataclass(frozen=True)
class _Target:
    """A request, and the port of the server that it is sent to."""

    port: int
    request: bytes


@dataclass(frozen=True)
class _Figures:
    """rate: requests a second. servers, database: microseconds of processor time a request."""

    rate: float
    servers: float
    database: float


def run(folder: Path) -> Iterator[Row]:
    with _cpu_groups() as groups, _run_servers(folder) as servers:
        agents = [server.create(f"agent {number}", "fake") for number, server in enumerate(servers)]
        token = servers[0].session["token"]
        lists = [_make_target(server, httpx.URL(server.url).netloc.decode(), "/v0/agents", token) for server in servers]
        own = [_model_target(server, agent) for server, agent in zip(servers, agents, strict=True)]
        any_server = [_model_target(server, agent) for server in servers for agent in agents]
        with _limited(servers, groups):
            yield from _measure(servers, "list of agents", _LISTS, (lists[:1], lists))
            yield from _measure(servers, "/v1/models of an agent, at its server", _MODELS, (own[:1], own))
            balanced = (own[:1], any_server)
            yield from _measure(servers, "/v1/models of an agent, at any server", _MODELS, balanced, _FORWARDED)


def _model_target(server: ServerProcess, agent: Mapping[str, Any]) -> _Target:
    host = f"{agent['agentId']}.agents.localhost:{httpx.URL(server.url).port}"
    return _make_target(server, host, "/v1/models", agent["gatewayToken"])


def _make_target(server: ServerProcess, host: str, path: str, token: str) -> _Target:
    head = f"GET {path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\n\r\n"
    return _Target(httpx.URL(server.url).port or 80, head.encode())


def _measure(
    servers: Sequence[ServerProcess], name: str, count: int, loads: Sequence[Sequence[_Target]], shortfall: str = ""
) -> Iterator[Row]:
    """Measure the load of one server and that of three in turns, each sent once before, so that all is known."""
    rounds = [[_send(servers, targets, count) for targets in loads] for _ in range(1 + RUNS)]
    first, three = zip(*rounds[1:], strict=True)
    rates, before = [found.rate for found in three], [found.rate for found in first]
    yield Row(f"{name}: three servers", rates, "/s", "one", before, ">= 2.5 x", {}, shortfall)
    cpu, before = [found.servers for found in three], [found.servers for found in first]
    yield Row(f"{name}: CPU of three servers", cpu, "us", "of one", before, "<= 1.2 x", {}, shortfall)
    cpu, before = [found.database for found in three], [found.database for found in first]
    yield Row(f"{name}: CPU of PostgreSQL", cpu, "us", "with one", before)


def _send(servers: Sequence[ServerProcess], targets: Sequence[_Target], count: int) -> _Figures:
    """Send `count` requests to each server that is a target."""
    ports = {target.port for target in targets}
    share, pids = len(targets) // len(ports), [one.pid for one in servers if httpx.URL(one.url).port in ports]
    requests, connections = count // share, _CONNECTIONS // share

    async def send_all() -> int:
        loads = (send_requests(target.port, target.request, requests, connections) for target in targets)
        return sum(map(len, await asyncio.gather(*loads)))

    before, database, began = sum(map(cpu_seconds, pids)), _database_seconds(), time.perf_counter()
    total = uvloop.run(send_all())
    took = time.perf_counter() - began
    used = sum(map(cpu_seconds, pids)) - before
    return _Figures(total / took, used / total * 1e6, (_database_seconds() - database) / total * 1e6)


@contextmanager
def _run_servers(folder: Path) -> Iterator[Sequence[ServerProcess]]:
    with ExitStack() as stack:
        address = stack.enter_context(s3_server())
        create_client(address).create_bucket(Bucket="shared")
        url = stack.enter_context(contextmanager(postgres_copy)(stack.enter_context(run_postgres()), "template0"))
        shared = {"ROOST_DATABASE_URL": url, "ROOST_KEK": "0" * 64, "ROOST_BLOBS": "s3://shared/roost"}
        shared |= {"AWS_ENDPOINT_URL": address, "AWS_ALLOW_HTTP": "true", "AWS_REGION": "us-east-1"}
        shared |= {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret"}
        servers: list[ServerProcess] = []
        for number, port in enumerate(find_free_ports(_SERVERS)):
            peer = {"ROOST_PEER_ADDRESS": f"127.0.0.1:{port}"}
            data = folder / f"server-{number}"
            servers.append(stack.enter_context(up(data, "--no-first-agent", program=FAKE_SERVER, **peer, **shared)))
        yield servers


@contextmanager
def _cpu_groups() -> Iterator[Sequence[Path]]:
    """Make a control group for each server, with its quota. Raises OSError where we may not."""
    files = [Path(f"/proc/self/{name}").read_text() for name in ("mountinfo", "cgroup")]
    controller = locate_controllers(*files)["cpu"]
    groups = [controller.base / f"roost-bench-{os.getpid()}-{number}" for number in range(_SERVERS)]
    quota = int(_SHARE * _PERIOD)
    limits = {"cpu.cfs_period_us": f"{_PERIOD}", "cpu.cfs_quota_us": f"{quota}"}
    try:
        for group in groups:
            group.mkdir()
            for name, value in limits.items() if controller.version == 1 else [("cpu.max", f"{quota} {_PERIOD}")]:
                (group / name).write_text(value)
        yield groups
    finally:
        remove_groups(groups)


@contextmanager
def _limited(servers: Sequence[ServerProcess], groups: Sequence[Path]) -> Iterator[None]:
    """Give each server its part of a processor. Raises RuntimeError if one left its group, to start a program."""
    before = [Path(f"/proc/{server.pid}/cgroup").read_text() for server in servers]
    for server, group in zip(servers, groups, strict=True):
        (group / "cgroup.procs").write_text(str(server.pid))
    limited = [Path(f"/proc/{server.pid}/cgroup").read_text() for server in servers]
    yield
    if limited != [Path(f"/proc/{server.pid}/cgroup").read_text() for server in servers] or before == limited:
        raise RuntimeError("a server was not in its control group")


def _database_seconds() -> float:
    """Return the processor time of all processes of PostgreSQL."""
    found = find_descendants(os.getpid())
    return sum(one.cpu_seconds for one in found if _read_name(one.pid) == "postgres")


def _read_name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:  # it has ended
        return ""
