"""An API read and a command over HTTP, compared with a minimal ASGI application on the same server software."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import httpx2 as httpx

from bench.table import Row, median_ms
from roost.hosts.server import open_listener
from tests.journeys.server_process import until, up

_READS = 1000
_HELLO = """
import sys, uvicorn
async def app(scope, receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"ok"})
uvicorn.run(app, port=int(sys.argv[1]), log_level="error", lifespan="off", loop="uvloop", http="httptools")
"""


def run(folder: Path) -> Sequence[Row]:
    with up(folder / "data", "--no-first-agent") as server, server.client() as client:
        agent = server.create("bench", "hermes")
        read = median_ms(lambda: client.get("/v0/agents").raise_for_status(), _READS, warm=50)
        path = f"/v0/agents/{agent['agentId']}/console/exec"
        body = {"command": "true"}
        run_true = median_ms(lambda: client.post(path, json=body).raise_for_status(), 300, warm=20)
    bare = measure_bare_asgi()
    return [
        Row("list of agents over HTTP, p50", read, "ms", "bare ASGI hello", bare, "within 10 x"),
        Row("console/exec of `true` over HTTP, p50", run_true, "ms", "bare ASGI hello", bare, "<= 3 ms"),
    ]


def measure_bare_asgi() -> float:
    """Return the median time of a request to a minimal ASGI application, in milliseconds."""
    with open_listener("127.0.0.1", 0) as free:
        port = free.getsockname()[1]
    with subprocess.Popen([sys.executable, "-c", _HELLO, str(port)]) as process:
        try:
            with httpx.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False) as client:
                until(lambda: _is_ready(client))
                return median_ms(lambda: client.get("/"), _READS, warm=50)
        finally:
            process.terminate()


def _is_ready(client: httpx.Client) -> bool:
    try:
        return client.get("/").status_code == 200
    except httpx.HTTPError:
        return False
