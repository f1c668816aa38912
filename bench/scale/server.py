"""A whole server whose containers are simulated: `DATA STARTS PRESENT`. Each agent has a container if PRESENT is 1.

It prints one JSON line for each start, once all agents are as they should be. A line "check" on its standard input is
answered with the seconds of a periodic check, "next" starts the server again as after a crash; the end of the input
ends it. All times are processor time of this process, which other programs of the machine do not change much.
"""

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, closing
from pathlib import Path

import sqlalchemy as sa

from roost import app, config
from roost.agents.lifecycle.workflows.reconcile import AgentReconciler
from roost.agents.registry import store
from roost.agents.workspace.snapshots.automatic import AutomaticSnapshots
from roost.core import clock
from roost.core.machine.interpreter import freeze_heap
from roost.core.machine.unix_socket import Stream, StreamHandler, connect_unix
from roost.drivers.runtime.contract import Container, ContainerSpec, RelayListener, Runtime
from roost.drivers.runtime.fake import FakeRuntime
from roost.identity.tenants import DEFAULT_TENANT
from roost.work.store import operations
from tests.support.server import RunningServer, running

_POLL_SECONDS = 0.1


class _ClosedRelay(RelayListener):
    def close(self) -> None:
        pass


class SimulatedRuntime(FakeRuntime):
    """Runtime of containers without processes: one program answers as all of their wardens, and relays stay closed."""

    def __init__(self, folder: Path, wardens: Path, present: Collection[str]) -> None:
        super().__init__(folder)
        self._wardens = wardens
        self._running = {agent_id: Container(agent_id, None, clock.utc_now()) for agent_id in present}

    @property
    def running(self) -> Collection[str]:
        return self._running

    async def start(self, spec: ContainerSpec) -> Container:
        return self._running.setdefault(spec.agent_id, Container(spec.agent_id, None, clock.utc_now()))

    async def stop(self, agent_id: str, grace: float = 5.0) -> None:  # noqa: ARG002 - nothing needs time to end
        self._running.pop(agent_id, None)

    async def list(self) -> Sequence[Container]:
        return list(self._running.values())

    async def connect(self, agent_id: str) -> Stream:  # noqa: ARG002 - one for all
        return await connect_unix(self._wardens)

    async def listen(self, agent_id: str, relay: str, handler: StreamHandler) -> RelayListener:  # noqa: ARG002
        return _ClosedRelay()


def _run_server(data: Path, runtime: Runtime) -> AbstractAsyncContextManager[RunningServer]:
    # Longer than it runs: no snapshot is taken meanwhile.
    return running(data, runtime=runtime, stop=False, ROOST_QUOTA_PAID="100000", ROOST_SNAPSHOT_DELAY="86400")


async def run_starts(data: Path, starts: int, is_present: bool, output: int) -> None:
    wardens = data / "wardens.sock"
    program = [sys.executable, "-m", "bench.scale.wardens", str(wardens)]
    with subprocess.Popen(program, stdout=subprocess.PIPE) as answering:
        assert answering.stdout is not None
        assert answering.stdout.readline()
        try:
            for _ in range(starts):
                runtime = SimulatedRuntime(data, wardens, list_agents({"ROOST_DATA": str(data)}) if is_present else ())
                began = time.process_time()
                # A server that stops cleanly would first stop its agents.
                async with _run_server(data, runtime) as server:
                    freeze_heap()  # as `roost up` does
                    started = time.process_time() - began
                    reconciler = server.roost.agents.lifecycle.reconciler
                    automatic = server.roost.agents.lifecycle.workspace.automatic
                    await automatic._task.stop()  # noqa: SLF001 - would watch workspaces where this takes over 5 s
                    await wait_until_settled(server.roost, reconciler)
                    settled = time.process_time() - began
                    await reconciler._watch.stop()  # noqa: SLF001 - would run beside that which is measured next
                    began = time.process_time()
                    await _watch_workspaces(automatic, len(runtime.running))
                    watched = time.process_time() - began
                    _write(
                        output,
                        {"port": server.port, "key": server.key(DEFAULT_TENANT)}
                        | {"start": started, "settled": settled, "watched": watched},
                    )
                    if not await _answer(reconciler, output):
                        return
        finally:
            answering.kill()


async def wait_until_settled(server: app.RoostServer, reconciler: AgentReconciler) -> None:
    """Wait until each adopted container has been looked into, and each agent without one has been started."""
    left = sa.select(operations.c.number).where(operations.c.finished_at.is_(None)).limit(1)
    while reconciler._unverified or await server.core.db.read(lambda connection: connection.execute(left).first()):  # noqa: SLF001
        await asyncio.sleep(_POLL_SECONDS)


async def _watch_workspaces(automatic: AutomaticSnapshots, count: int) -> None:
    """Begin to watch the workspaces of all agents, and wait until their containers have answered."""
    await automatic._check()  # noqa: SLF001
    while sum(watch._waiting is not None for watch in automatic._watches.values()) < count:  # noqa: SLF001
        await asyncio.sleep(_POLL_SECONDS)


def list_agents(environment: Mapping[str, str]) -> Sequence[str]:
    with closing(app.open_database(config.load_settings(environment))) as db:
        return db.run(lambda connection: connection.execute(sa.select(store.agents.c.id)).scalars().all())


async def _answer(reconciler: AgentReconciler, output: int) -> bool:
    """Answer requests for measurements; return whether another start follows."""
    while (line := (await asyncio.to_thread(sys.stdin.readline)).strip()) == "check":
        began = time.process_time()
        await reconciler._check_all()  # noqa: SLF001 - one of its checks is measured
        _write(output, time.process_time() - began)
    return line == "next"


def _write(output: int, value: object) -> None:
    os.write(output, json.dumps(value).encode() + b"\n")


if __name__ == "__main__":
    answers = os.dup(1)
    os.dup2(2, 1)  # the log of the server
    asyncio.run(run_starts(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3] == "1", answers))
