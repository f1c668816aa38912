"""An API read and a command over HTTP, compared with a minimal ASGI application on the same server software."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import httpx2 as httpx

from bench.row import Row
from bench.timing import time_in_turns
from roost.http.server.server import open_listener
from tests.journeys.server_process import until, up

BARE_ASGI = "bare ASGI hello"
_READS, _COMMANDS = 200, 60
_HELLO = """
import sys, uvicorn
async def app(scope, receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"ok"})
uvicorn.run(app, port=int(sys.argv[1]), log_level="error", lifespan="off", loop="uvloop", http="httptools")
"""


def run(folder: Path) -> Iterator[Row]:
    with up(folder / "data", "--no-first-agent") as server, server.client() as client, bare_asgi() as hello:
        agent = server.create("bench", "hermes")

        def read() -> None:
            client.get("/v0/agents").raise_for_status()

        def execute() -> None:
            client.post(f"/v0/agents/{agent['agentId']}/console/exec", json={"command": "true"}).raise_for_status()

        reads, bare = time_in_turns(read, hello, rounds=_READS, warm=50)
        yield Row("list of agents over HTTP, p50", reads, "ms", BARE_ASGI, bare, "<= 4 x")
        commands, bare = time_in_turns(execute, hello, rounds=_COMMANDS, warm=20)
        yield Row("console/exec of `true` over HTTP, p50", commands, "ms", BARE_ASGI, bare, "<= 6 x")


@contextmanager
def bare_asgi() -> Iterator[Callable[[], None]]:
    """Run a minimal ASGI application; yield a function that sends it a request."""
    with open_listener("127.0.0.1", 0) as free:
        port = free.getsockname()[1]
    with subprocess.Popen([sys.executable, "-c", _HELLO, str(port)]) as process:
        try:
            with httpx.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False) as client:
                until(lambda: _is_ready(client))
                yield partial(_greet, client)
        finally:
            process.terminate()


def _greet(client: httpx.Client) -> None:
    client.get("/").raise_for_status()


def _is_ready(client: httpx.Client) -> bool:
    try:
        return client.get("/").status_code == 200
    except httpx.HTTPError:
        return False
