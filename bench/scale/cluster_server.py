"""A server whose agents are pods of a fake cluster: `ENVIRONMENT SHARE SECONDS`, the first as JSON.

It prints what it used in that time, as JSON, while that share of the agents fails each second and is started again:
processor time, SQL statements and requests to the API server a second, and memory. API server and wardens are processes
of their own; all run in a network namespace, because pods have addresses.
"""

import asyncio
import base64
import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx2 as httpx
import sqlalchemy as sa
import uvloop
from sqlalchemy import Connection, Engine, event

from bench.pods import NAMESPACE
from bench.processes import read_memory
from bench.scale.pods import OPTIONS
from bench.scale.server import list_agents, wait_until_settled
from roost.core.machine.interpreter import freeze_heap
from roost.core.sensitive import Sensitive
from roost.drivers.runtime.contract import BRIDGE_PORT
from roost.drivers.runtime.kubernetes.api import KubernetesApi
from roost.drivers.runtime.kubernetes.credentials import ClusterAccess, ClusterCredentials
from roost.drivers.runtime.kubernetes.driver import KubernetesRuntime
from roost.drivers.runtime.loopback_namespace import enter_namespace
from roost.drivers.runtime.tls_carrier import make_bridge_certificate
from roost.http.server.server import raise_descriptor_limit
from tests.support.kubernetes.cluster import ADMIN_TOKEN
from tests.support.server import running

_WARM_SECONDS = 6.0  # more than a period of the reconciler
_MB = 1e6


class _CountingApi(KubernetesApi):
    """Client that counts its requests."""

    def __init__(self, access: ClusterAccess, counts: "Counter[str]") -> None:
        super().__init__(access, "0")

        async def count(request: httpx.Request) -> None:  # noqa: ARG001
            counts["requests"] += 1

        self._client.event_hooks = {"request": [count]}


async def measure(environment: Mapping[str, str], share: float, seconds: float, output: int) -> None:
    data, counts = Path(environment["ROOST_DATA"]), Counter[str]()
    agents = list_agents(environment)
    certificate = base64.b64encode(make_bridge_certificate("pods").reveal().encode()).decode()
    wardens = _start("bench.scale.wardens", str(BRIDGE_PORT), certificate)
    pods = _start("bench.scale.pods", certificate)
    try:
        _write(pods, json.dumps(agents))
        access = ClusterAccess(_read(pods), NAMESPACE, ClusterCredentials(token=Sensitive(ADMIN_TOKEN.encode())))
        _read(wardens)
        runtime = KubernetesRuntime(_CountingApi(access, counts), OPTIONS, data)
        before, began = read_memory(os.getpid(), "VmRSS"), time.process_time()
        event.listen(Engine, "after_cursor_execute", lambda *_: counts.update(["statements"]))
        # Longer than it runs: no snapshot is taken meanwhile.
        shared: dict[str, Any] = {**environment, "ROOST_QUOTA_PAID": "100000", "ROOST_SNAPSHOT_DELAY": "86400"}
        async with running(data, runtime=runtime, stop=False, **shared) as server:
            freeze_heap()  # as `roost up` does
            await wait_until_settled(server.roost, server.roost.agents.lifecycle.reconciler)
            started = time.process_time() - began
            _write(pods, str(len(agents) * share))
            await asyncio.sleep(_WARM_SECONDS)
            counts.clear()
            began, cpu = time.monotonic(), time.process_time()
            await asyncio.sleep(seconds)
            took, used = time.monotonic() - began, time.process_time() - cpu
            memory = read_memory(os.getpid(), "VmRSS") - before
            waiting = await server.roost.core.db.read(_count_waiting)
            figures = {"cpu": used / took, "memory": memory * _MB, "start": started, "waiting": waiting}
            figures |= {name: counts[name] / took for name in ("statements", "requests")}
            os.write(output, json.dumps(figures).encode())
            wardens.kill()
            pods.kill()
            os._exit(0)  # thousands of bridges need not be closed
    finally:
        wardens.kill()
        pods.kill()


def _count_waiting(connection: Connection) -> int:
    """Count the agents that do not run: more than fail in a few seconds mean that the server falls behind."""
    return connection.execute(sa.text("SELECT count(*) FROM agents WHERE state <> 'running'")).scalar_one()


def _start(module: str, *arguments: str) -> "subprocess.Popen[str]":
    argv = [sys.executable, "-m", module, *arguments]
    return subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def _write(process: "subprocess.Popen[str]", line: str) -> None:
    assert process.stdin is not None
    process.stdin.write(line + "\n")
    process.stdin.flush()


def _read(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    line = process.stdout.readline().strip()
    assert line, "a process ended; its log is above"
    return line


if __name__ == "__main__":
    answers = os.dup(1)
    os.dup2(2, 1)  # the log of the server
    enter_namespace()
    raise_descriptor_limit()
    uvloop.run(measure(json.loads(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3]), answers))
