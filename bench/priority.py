"""Latency of the server while agents use up every core, compared with the same server while they are idle.

Agents run busy loops first, then chat with themselves without a pause. In each state the server is killed once and
started again.
"""

import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import httpx2 as httpx

from bench.row import Row
from tests.journeys.server_process import ServerProcess, until, up

_AGENTS = 20
_READS, _COMMANDS, _CHATS = 400, 100, 20
_WARM = 5
_SETTLE_SECONDS, _PREFERRED_SECONDS = 3.0, 12.0
_CHAT = {"model": "default", "messages": [{"role": "user", "content": "Say hello."}]}
_OWN_CHAT = """. /home/agent/.roost/hermes/.env
curl -s -o /dev/null -H "Authorization: Bearer $API_SERVER_KEY" -H 'Content-Type: application/json' \\
  -d '{"messages": [{"role": "user", "content": "Say hello."}]}' \\
  http://127.0.0.1:$API_SERVER_PORT/v1/chat/completions || sleep 1"""
"""A chat of an agent with itself, for which no request to the server waits."""
_STATES = {"20 busy loops": ":", "20 Hermes at work": _OWN_CHAT}


class _Latency(NamedTuple):
    p50: float
    p99: float


_SHORTFALL = (
    "What an agent answers has the priority of agents, and waits for its turn among theirs; the list of agents, which "
    "the server answers alone, shows what the server keeps for itself."
)


def run(folder: Path) -> Iterator[Row]:
    compiled = {"PYTHONDONTWRITEBYTECODE": ""}  # as an installed server is
    with up(folder / "data", "--no-first-agent", **compiled) as server, ThreadPoolExecutor(2) as executor:
        agents = list(executor.map(server.create, map("a{}".format, range(_AGENTS)), ["hermes"] * _AGENTS))
        time.sleep(_SETTLE_SECONDS)
        idle = _measure_requests(server, agents[0])
        idle_start = _measure_start(server)
        for state, work in _STATES.items():
            with _keep_busy(server, agents, work):
                for what, found in _measure_requests(server, agents[0]).items():
                    yield Row(f"{what}, {state}, p50", found.p50, "ms", "idle", idle[what].p50)
                    name, before = f"{what}, {state}, p99", idle[what].p99
                    yield Row(name, found.p99, "ms", "idle", before, "<= 5 x", shortfall=_SHORTFALL)
                yield Row(f"kill -9 to ready, {state}", _measure_start(server), "s", "idle", idle_start, "<= 5 s")


def _measure_requests(server: ServerProcess, agent: Mapping[str, Any]) -> Mapping[str, _Latency]:
    command = f"/v0/agents/{agent['agentId']}/console/exec"
    with server.client() as client, server.agent_client(dict(agent)) as edge:
        return {
            "list of agents": _latency(lambda: client.get("/v0/agents"), _READS),
            "console/exec of `true`": _latency(lambda: client.post(command, json={"command": "true"}), _COMMANDS),
            "health of a gateway through the edge": _latency(lambda: edge.get("/health"), _COMMANDS),
            "chat through the edge": _latency(lambda: edge.post("/v1/chat/completions", json=_CHAT), _CHATS),
        }


def _latency(send: Callable[[], httpx.Response], count: int) -> _Latency:
    times: list[float] = []
    for number in range(_WARM + count):
        began = time.perf_counter()
        send().raise_for_status()
        if number >= _WARM:
            times.append((time.perf_counter() - began) * 1000)
    return _Latency(statistics.median(times), statistics.quantiles(times, n=100, method="inclusive")[98])


def _measure_start(server: ServerProcess) -> float:
    """Kill the server, and return the seconds from its start until it is ready and lists its agents."""
    server.kill()
    began = time.perf_counter()
    server.start()
    with server.client() as client:
        until(lambda: client.get("/readyz").status_code == 200, every=0.02)
        client.get("/v0/agents").raise_for_status()
    return time.perf_counter() - began


@contextmanager
def _keep_busy(server: ServerProcess, agents: Sequence[Mapping[str, Any]], work: str) -> Iterator[None]:
    """Run a script in all agents again and again; yield when their containers are no longer preferred for its start."""
    script = f"cat > /tmp/busy.sh <<'END'\nwhile :; do\n{work}\ndone\nEND\n"
    _execute(server, agents, f"{script}nohup sh /tmp/busy.sh > /dev/null 2>&1 &")
    try:
        time.sleep(_PREFERRED_SECONDS)
        yield
    finally:
        _execute(server, agents, "pkill -f busy.sh")


def _execute(server: ServerProcess, agents: Sequence[Mapping[str, Any]], command: str) -> None:
    with server.client() as client:
        for agent in agents:
            client.post(f"/v0/agents/{agent['agentId']}/console/exec", json={"command": command}).raise_for_status()
