"""Requests and WebSockets through the agents' edge, compared with nginx, Caddy and the upstream without a proxy.

A proxy and its auth server have one CPU to themselves, client and upstream another. The proxies take turns, and each
figure is a median of several rounds. CPU is the time of the serving processes, divided by the number of requests.
"""

import asyncio
import os
import statistics
import time
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import uvloop

from bench.load import echo_messages, hold_responses, send_requests
from bench.processes import cpu_seconds, pinned_to, read_memory
from bench.proxies import (
    AGENTS,
    CADDY,
    NGINX,
    Proxy,
    StartProxy,
    find_proxies,
    request_head,
    run_edge,
    run_relay,
    run_upstream,
)
from bench.row import Row, Runs
from roost.http.server.server import raise_descriptor_limit

_CONNECTIONS = 64
_REQUESTS = 6_000
_ROUNDS = 5
_SOCKETS, _SLOW_READERS = 2_000, 100
_HANDSHAKE = (
    "Connection: Upgrade",
    "Upgrade: websocket",
    "Sec-WebSocket-Version: 13",
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
)
_MESSAGE = b"\x81\xc0" + bytes(4) + b"x" * 64  # a masked text frame
_OWN, _BARE, _RELAY = "the edge", "no proxy", "a relay on uvloop that looks at no byte"
_REQUEST_SHORTFALL = (
    "What is above the relay is the edge's: it reads the head, finds the agent and checks the token, in Python. On an "
    "AMD EPYC it was 0.93 x."
)
_MESSAGE_SHORTFALL = (
    "A relay of the same event loop that looks at no byte is the limit for Python, above nginx; what is above the "
    "relay is the edge's."
)


class _Figures(NamedTuple):
    """The figures of each round."""

    cpu: Sequence[float]
    rate: Sequence[float]
    p50: Sequence[float]
    p99: Sequence[float]
    echo_cpu: Sequence[float]


@dataclass(frozen=True)
class _Machine:
    """Where the processes run: servers on one CPU, client and upstream on another if there is one."""

    server: int
    client: int

    @classmethod
    def detect(cls) -> "_Machine":
        cpus = sorted(os.sched_getaffinity(0))
        return cls(cpus[0], cpus[-1])


def run(folder: Path) -> Iterator[Row]:
    raise_descriptor_limit()
    machine, proxies = _Machine.detect(), {_OWN: run_edge, **find_proxies()}
    with ExitStack() as stack:
        upstream = stack.enter_context(run_upstream(machine.client))
        stack.enter_context(pinned_to(machine.client))
        figures = _measure_load(folder, machine, upstream, {**proxies, _RELAY: run_relay})
        cpu = {k: v.cpu for k, v in figures.items()}
        yield _row("request to an agent's port, CPU", "us", "<= 1 x", cpu, _REQUEST_SHORTFALL)
        name = f"requests to an agent's port, {_CONNECTIONS} at a time"
        yield _row(name, "/s", "", {k: v.rate for k, v in figures.items()})
        yield _row(f"{name}, p50", "ms", "", {k: v.p50 for k, v in figures.items()})
        yield _row(f"{name}, p99", "ms", "", {k: v.p99 for k, v in figures.items()})
        name = "WebSocket message there and back, CPU"
        yield _row(name, "us", "<= 1 x", {k: v.echo_cpu for k, v in figures.items()}, _MESSAGE_SHORTFALL)
        sockets = {name: _measure_idle(folder, machine, upstream, start) for name, start in proxies.items()}
        idle = {name: after for name, (_, after) in sockets.items()} | {f"{_OWN} without them": sockets[_OWN][0]}
        yield _row(f"memory with {_SOCKETS:,} idle WebSockets", "MB", "<= 1 x", idle)
        slow = {name: _measure_slow(folder, machine, upstream, start) for name, start in proxies.items()}
        yield _row(f"memory of {_SLOW_READERS} slow readers", "MB", "<= 5 x", slow)


def _row(name: str, unit: str, goal: str, figures: Mapping[str, Runs], shortfall: str = "") -> Row:
    reference = NGINX if NGINX in figures else CADDY
    others = {key: value for key, value in figures.items() if key not in {_OWN, reference}}
    return Row(name, figures[_OWN], unit, reference, figures[reference], goal, others, shortfall)


def _measure_load(
    folder: Path, machine: _Machine, upstream: Proxy, proxies: Mapping[str, StartProxy]
) -> Mapping[str, _Figures]:
    with ExitStack() as stack:
        running = {
            name: stack.enter_context(start(folder, upstream.port, machine.server)) for name, start in proxies.items()
        }
        running[_BARE] = upstream
        rounds = [{name: _measure_round(proxy) for name, proxy in running.items()} for _ in range(_ROUNDS)]
    return {name: _Figures(*zip(*(each[name] for each in rounds), strict=True)) for name in running}


def _measure_round(proxy: Proxy) -> Sequence[float]:
    """Return the figures of one round, in the order of `_Figures`."""
    request, handshake = request_head("/bench?x=1"), request_head("/ws", 0, *_HANDSHAKE)
    uvloop.run(send_requests(proxy.port, request, _REQUESTS // 10, _CONNECTIONS))
    began = time.perf_counter()
    cpu, seconds = _cpu_of(proxy, send_requests(proxy.port, request, _REQUESTS, _CONNECTIONS))
    elapsed = time.perf_counter() - began
    echo_cpu, _ = _cpu_of(proxy, echo_messages(proxy.port, handshake, _MESSAGE, _REQUESTS, _CONNECTIONS))
    points = statistics.quantiles(seconds, n=100)
    return cpu, len(seconds) / elapsed, points[49] * 1000, points[98] * 1000, echo_cpu


def _cpu_of(proxy: Proxy, load: Coroutine[None, None, Sequence[float]]) -> tuple[float, Sequence[float]]:
    """Run a load; return the CPU time of one request in microseconds, and the duration of each."""
    before = sum(map(cpu_seconds, proxy.pids))
    seconds = uvloop.run(load)
    return (sum(map(cpu_seconds, proxy.pids)) - before) / len(seconds) * 1e6, seconds


def _measure_idle(folder: Path, machine: _Machine, upstream: Proxy, start: StartProxy) -> tuple[float, float]:
    """Return the memory of a proxy without and with idle WebSockets, in MB."""
    handshakes = [request_head("/ws", number % AGENTS, *_HANDSHAKE) for number in range(_SOCKETS)]
    with start(folder, upstream.port, machine.server) as proxy:
        return _memory(proxy), uvloop.run(_memory_with(proxy, handshakes, b"101"))


def _measure_slow(folder: Path, machine: _Machine, upstream: Proxy, start: StartProxy) -> float:
    """Return the growth of the memory of a proxy by clients that read no further than the beginning, in MB."""
    requests = [request_head("/big", number % AGENTS) for number in range(_SLOW_READERS)]
    with start(folder, upstream.port, machine.server) as proxy:
        uvloop.run(send_requests(proxy.port, request_head("/bench"), _REQUESTS // 10, _CONNECTIONS))
        before = _memory(proxy)
        return uvloop.run(_memory_with(proxy, requests, b"200")) - before


async def _memory_with(proxy: Proxy, requests: Sequence[bytes], status: bytes) -> float:
    """Return the memory once it grows no more, in MB."""
    async with hold_responses(proxy.port, requests, status):
        before, now = -1.0, 0.0
        while now > before:
            before = now
            await asyncio.sleep(0.5)
            now = _memory(proxy)
        return now


def _memory(proxy: Proxy) -> float:
    return sum(read_memory(pid, "VmRSS") for pid in proxy.pids)
