"""A terminal of an agent: time from a key to its echo, also on the dashboard's page, and memory of a session.

Keys are typed into `cat` in a container, over HTTP on loopback; the reference is a WebSocket that echoes, and for the
page a plain WebSocket client in the same run. Memory is that of the warden, whose sessions have each filled their
buffer of output; the program of a session comes on top.
"""

import asyncio
import os
import pty
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any
from urllib.parse import quote

from websockets.asyncio.client import ClientConnection, connect

from bench import terminal_page
from bench.processes import free_port, run_process
from bench.row import Row
from bench.timing import percentile_95, split_runs
from tests.journeys.server_process import ServerProcess, up

_KEYS, _PAGE_KEYS, _WARM_KEYS, _INTERVAL = 500, 300, 20, 0.005
_SESSIONS, _BUFFER_KIB = 8, 256
_ECHO = """
import asyncio, sys
from websockets.asyncio.server import serve
async def echo(socket):
    await socket.send("session")
    async for message in socket:
        await socket.send(message)
async def main():
    async with serve(echo, "127.0.0.1", int(sys.argv[1]), compression=None) as server:
        await server.serve_forever()
asyncio.run(main())
"""
_FLOOD = "head -c 600000 /dev/zero | tr '\\0' z; echo the-end; cat"


def run(folder: Path) -> Iterator[Row]:
    with up(folder / "data", "--no-first-agent") as server:
        agent = server.create("bench", "hermes")
        echoes, bare = asyncio.run(_measure_echo(_open(server, agent, "cat"))), _measure_bare_echo()
        yield from _rows("terminal: a key to its echo", echoes, "bare WebSocket echo", bare, "<= 4 x")
        yield Row(
            "terminal: a key to its echo, local pseudo-terminal, p50", statistics.median(_measure_local_echo()), "ms"
        )
        warden = server.warden_pids()[agent["agentId"]]
        if part := terminal_page.missing_part(server):
            terminal_page.report_missing(part)
        else:
            shown = asyncio.run(terminal_page.measure_page_echo(server, agent, _PAGE_KEYS, _WARM_KEYS))
            yield from _rows("terminal page: a key to its echo", shown, "plain WebSocket client", echoes, "<= 15 x")
        size = asyncio.run(_measure_memory(server, agent, warden))
        yield Row("terminal: memory of a session", size, "KiB", "its buffer of output", _BUFFER_KIB, "<= 2 x")


def _rows(name: str, echoes: Sequence[float], reference: str, others: Sequence[float], goal: str) -> Iterator[Row]:
    runs, reference_runs = split_runs(echoes), split_runs(others)
    for label, figure, limit in (("p50", statistics.median, ""), ("p95", percentile_95, goal)):
        measured, beside = (list(map(figure, each)) for each in (runs, reference_runs))
        yield Row(f"{name}, {label}", measured, "ms", reference, beside, limit)


def _open(server: ServerProcess, agent: dict[str, Any], command: str) -> connect:
    port = server.url.rpartition(":")[2]
    url = f"ws://localhost:{port}/v0/agents/{agent['agentId']}/console/stream?command={command}"
    headers = {"Authorization": f"Bearer {server.session['token']}"}
    return connect(url, host="127.0.0.1", additional_headers=headers, proxy=None, compression=None, max_size=None)


def _measure_bare_echo() -> list[float]:
    port = free_port()
    with run_process([sys.executable, "-c", _ECHO, str(port)], port):
        return asyncio.run(_measure_echo(connect(f"ws://127.0.0.1:{port}/", proxy=None, compression=None)))


async def _measure_echo(connecting: connect) -> list[float]:
    async with connecting as socket:
        await socket.recv()  # the session
        times = [await _echo_ms(socket) for _ in range(_WARM_KEYS + _KEYS)]
    return times[_WARM_KEYS:]


async def _echo_ms(socket: ClientConnection) -> float:
    await asyncio.sleep(_INTERVAL)
    began = time.perf_counter()
    await socket.send(b"k")
    echo = await asyncio.wait_for(socket.recv(decode=False), 10)
    assert echo.endswith(b"k"), echo
    return (time.perf_counter() - began) * 1000


def _measure_local_echo() -> list[float]:
    ours, theirs = pty.openpty()
    with subprocess.Popen(["cat"], stdin=theirs, stdout=theirs) as process:
        os.close(theirs)
        times = [_local_echo_ms(ours) for _ in range(_WARM_KEYS + _KEYS)]
        process.kill()
    os.close(ours)
    return times[_WARM_KEYS:]


def _local_echo_ms(fd: int) -> float:
    time.sleep(_INTERVAL)
    began = time.perf_counter()
    os.write(fd, b"k")
    assert os.read(fd, 16) == b"k"
    return (time.perf_counter() - began) * 1000


async def _measure_memory(server: ServerProcess, agent: dict[str, Any], warden: int) -> float:
    """Return the growth of the warden for each session, in KiB."""
    async with AsyncExitStack() as opened:
        await _fill(await opened.enter_async_context(_open(server, agent, quote(_FLOOD))))  # loads the code
        before = _resident_kib(warden)
        for _ in range(_SESSIONS - 1):
            await _fill(await opened.enter_async_context(_open(server, agent, quote(_FLOOD))))
        return (_resident_kib(warden) - before) / (_SESSIONS - 1)


async def _fill(socket: ClientConnection) -> None:
    """Read until the buffer of the session has been filled."""
    async with asyncio.timeout(30):
        async for message in socket:
            if isinstance(message, bytes) and b"the-end" in message:
                return


def _resident_kib(pid: int) -> int:
    found = re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())
    assert found
    return int(found[1])
