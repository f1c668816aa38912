"""Time from a line that an agent prints to its arrival at 200 log subscribers, compared with a bare WebSocket fan-out.

A line is the time at which it was printed, by the same clock. The reference is a loop that sends such lines to as many
sockets.
"""

import asyncio
import json
import re
import socket
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from websockets.asyncio.client import connect

from bench.row import Row
from bench.timing import percentile_95
from tests.journeys.server_process import ServerProcess, until, up

_SOCKETS = 200
_LINES = 60
_INTERVAL = 0.25
_TIMEOUT = 120.0
_STAMP = re.compile(r"stamp (\d{16,20})")
_PRINT = f"while true; do echo stamp $(date +%s%N); sleep {_INTERVAL}; done"
_FAN_OUT = """
import asyncio, sys, time
from websockets.asyncio.server import broadcast, serve
async def main():
    sockets = set()
    async def subscribe(socket):
        sockets.add(socket)
        await socket.wait_closed()
        sockets.discard(socket)
    async with serve(subscribe, "127.0.0.1", int(sys.argv[1]), compression=None):
        while True:
            broadcast(sockets, f"stamp {time.time_ns()}")
            await asyncio.sleep(float(sys.argv[2]))
asyncio.run(main())
"""


def run(folder: Path) -> Iterator[Row]:
    with up(folder / "data", "--no-first-agent") as server:
        agent = server.create("bench", "hermes")
        _start_printing(server, agent)
        port = server.url.rpartition(":")[2]
        url = f"ws://{agent['agentId']}.agents.localhost:{port}/v0/logs?token={agent['gatewayToken']}"
        ours = asyncio.run(_latencies(url, int(port), lambda text: json.loads(text)["message"]))
    bare = _measure_fan_out()
    name, reference = f"a printed line at all {_SOCKETS} subscribers", f"bare fan-out to {_SOCKETS}"
    yield Row(f"{name}, p50", statistics.median(ours), "ms", reference, statistics.median(bare))
    yield Row(f"{name}, p95", percentile_95(ours), "ms", reference, percentile_95(bare), "<= 4 x")


def _start_printing(server: ServerProcess, agent: dict[str, Any]) -> None:
    """Print lines in the agent's container, by its `start` script."""
    manifest = json.dumps({"scripts": {"start": _PRINT}})
    with server.agent_client(agent) as client:
        body = {"command": f"cat > manifest.json <<'END'\n{manifest}\nEND"}
        client.post("/v0/console/exec", json=body).raise_for_status()
        client.post(f"/v0/agents/{agent['agentId']}/scripts/retry").raise_for_status()
        until(lambda: _STAMP.search(client.get("/v0/logs").text))


def _measure_fan_out() -> list[float]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with subprocess.Popen([sys.executable, "-c", _FAN_OUT, str(port), str(_INTERVAL)]) as process:
        try:
            until(lambda: _is_listening(port))
            return asyncio.run(_latencies(f"ws://127.0.0.1:{port}/", port, lambda text: text))
        finally:
            process.terminate()


def _is_listening(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


async def _latencies(url: str, port: int, line: Callable[[str], str]) -> list[float]:
    """Return the milliseconds from the print of each line to its arrival at the last socket."""
    arrived: dict[int, list[int]] = defaultdict(list)
    opened = asyncio.Event()
    waiting = _SOCKETS

    async def subscribe() -> None:
        nonlocal waiting
        async with connect(url, host="127.0.0.1", port=port, compression=None, proxy=None, open_timeout=60) as stream:
            waiting -= 1
            if not waiting:
                opened.set()
            async for message in stream:
                now = time.time_ns()
                if found := _STAMP.search(line(str(message))):
                    arrived[int(found[1])].append(now)

    tasks = [asyncio.create_task(subscribe()) for _ in range(_SOCKETS)]
    try:
        async with asyncio.timeout(_TIMEOUT):
            await opened.wait()
            began = time.time_ns()
            await asyncio.sleep(_LINES * _INTERVAL)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    ended = time.time_ns() - 2_000_000_000  # the last lines may still be in transit
    printed = {stamp: times for stamp, times in arrived.items() if began < stamp < ended}
    assert len(printed) >= _LINES // 2, f"{len(printed)} lines arrived"
    missing = [stamp for stamp, times in printed.items() if len(times) != _SOCKETS]
    assert not missing, f"{len(missing)} lines did not reach all {_SOCKETS}"
    return [(max(times) - stamp) / 1e6 for stamp, times in printed.items()]
