"""Memory of the server: idle, beside its libraries alone, and what each idle agent adds to it.

The agents run the fake engine in real containers; the memory of those is not the server's.
"""

import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from bench.processes import read_memory
from bench.row import Row
from roost import app
from roost.__main__ import main
from roost.drivers.engine.fake.driver import FakeEngine
from tests.journeys.server_process import ServerProcess, up

FAKE_SERVER = (sys.executable, "-m", "bench.memory")
"""`roost up` with the fake engine."""
_STARTS = 3
_SETTLE_SECONDS = 5.0
_FIRST_AGENTS, _AGENTS = 10, 50
_LIBRARIES = """
import asyncio, logging, ssl
import cryptography.hazmat.primitives.ciphers.aead, fastapi, httpcore2, httptools, httpx2, jwt, prometheus_client
import pydantic, rich.table, sqlalchemy.dialects.sqlite, sqlalchemy.dialects.postgresql, starlette.formparsers
import structlog, typer, uvicorn, uvloop, websockets.client, yaml
import sqlite3
"""
_CODE = "import roost.app.server, roost.cli.commands, roost.cli.server.up\n"
_SHORTFALL = (
    "Libraries and code, before a server runs, need more than the goal: Python keeps each module, its functions, "
    "types and descriptions of the API in memory. The running server adds the difference."
)


def run(folder: Path) -> Iterator[Row]:
    with up(folder / "data", "--no-first-agent") as server:
        first = _settled_memory(server)
    servers, libraries, code = list[float](), list[float](), list[float]()
    for _ in range(_STARTS):
        with up(folder / "data", "--no-first-agent") as server:
            servers.append(_settled_memory(server))
        libraries.append(_imports_memory(_LIBRARIES))
        code.append(_imports_memory(_LIBRARIES + _CODE))
    name, others = "memory of an idle server", {"libraries and Roost's code, without a server": code}
    yield Row(name, servers, "MB", "its libraries alone", libraries, "<= 110 MB", others, _SHORTFALL)
    yield Row("the same after the first start, which makes the database", first, "MB")
    yield _measure_agents(folder / "agents")


def _measure_agents(data: Path) -> Row:
    """Measure what agents add after the first ones, which load what all of them use."""
    with up(data, "--no-first-agent", program=FAKE_SERVER, ROOST_QUOTA_PAID="100") as server:
        memory: list[float] = []
        for count in (_FIRST_AGENTS, _AGENTS):
            with ThreadPoolExecutor(2) as pool:
                list(pool.map(partial(server.create, engine="fake"), map(str, range(count))))
            memory.append(_settled_memory(server))
    return Row(
        f"memory of the server per idle agent, of {_AGENTS}", (memory[1] - memory[0]) / _AGENTS, "MB", goal="<= 0.5 MB"
    )


def _settled_memory(server: ServerProcess) -> float:
    time.sleep(_SETTLE_SECONDS)
    return read_memory(server.pid, "VmRSS")


def _imports_memory(imports: str) -> float:
    program = imports + 'print(open("/proc/self/status").read())'
    status = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout
    found = next(line for line in status.splitlines() if line.startswith("VmRSS"))
    return int(found.split()[1]) * 1024 / 1e6


if __name__ == "__main__":
    app.create_drivers = partial(app.create_drivers, engines=[FakeEngine()])
    main()
