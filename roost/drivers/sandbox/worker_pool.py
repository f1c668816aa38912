"""Reusable workers in sandboxes: a few at a time, of which one that hangs or dies is replaced.

`find_packages` finds what their programs import, without an import here.
"""

import asyncio
import importlib.util
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import TypeVar

from roost.core import log
from roost.drivers.runtime.contract import RuntimeFailed
from roost.drivers.sandbox.contract import Sandbox, SandboxProcess, SandboxProgram

_log = log.get_logger("sandbox_workers")
T = TypeVar("T")


class WorkersBusy(Exception):  # noqa: N818 - a reason to wait, not a failure
    """Too many requests wait for a worker."""


class WorkerPool:
    """Workers of one program, which start when they are needed."""

    def __init__(
        self,
        sandbox: Sandbox,
        program: SandboxProgram,
        *,
        processes: int,
        max_waiting: int,
        idle_seconds: float | None = None,
    ) -> None:
        """`idle_seconds` is the time without a request after which all workers end."""
        self.idle: list[SandboxProcess] = []
        self._sandbox = sandbox
        self._program = program
        self._slots = asyncio.Semaphore(processes)
        self._max_waiting = max_waiting
        self._waiting = 0
        self._idle_seconds = idle_seconds
        self._end_of_idle: asyncio.TimerHandle | None = None
        self._ending: asyncio.Task[None] | None = None

    async def request(self, exchange: Callable[[SandboxProcess], Awaitable[T]]) -> T:
        """Run an exchange with a worker that has no other one, and keep the worker unless the exchange raises.

        Raises WorkersBusy, RuntimeFailed, and what the exchange raises.
        """
        if self._waiting >= self._max_waiting:
            raise WorkersBusy
        self._waiting += 1
        try:
            async with self._slots:
                return await self._request(exchange)
        finally:
            self._waiting -= 1

    async def close(self) -> None:
        """End all idle workers. Idempotent; a later request starts new ones."""
        if self._end_of_idle is not None:
            self._end_of_idle.cancel()
        await self._end_idle()

    async def _request(self, exchange: Callable[[SandboxProcess], Awaitable[T]]) -> T:
        worker = await self._take_idle() or await self._sandbox.start(self._program)
        try:
            result = await exchange(worker)
        except BaseException:
            await worker.kill()
            raise
        self._keep(worker)
        return result

    async def _take_idle(self) -> SandboxProcess | None:
        while self.idle:
            worker = self.idle.pop()
            if worker.is_alive():
                return worker
            await worker.kill()
        return None

    def _keep(self, worker: SandboxProcess) -> None:
        self.idle.append(worker)
        if self._end_of_idle is not None:
            self._end_of_idle.cancel()
        if self._idle_seconds is not None:
            self._end_of_idle = asyncio.get_running_loop().call_later(self._idle_seconds, self._begin_to_end)

    def _begin_to_end(self) -> None:
        self._ending = asyncio.create_task(self._end_idle())

    async def _end_idle(self) -> None:
        idle, self.idle = self.idle, []
        for worker in idle:
            try:
                await worker.kill()
            except RuntimeFailed as error:
                _log.error("sandbox_worker.stayed", pid=worker.pid, reason=error.message)


async def read_answer(worker: SandboxProcess, max_bytes: int) -> bytes:
    """Read an answer: a line with its size, then that many bytes. Raises OSError, EOFError, ValueError."""
    size = int(await worker.reader.readuntil(b"\n"))
    if not 0 <= size <= max_bytes:
        raise ValueError(f"an answer of {size} bytes")
    return await worker.reader.readexactly(size)


def find_packages(*names: str, libraries: str = "") -> Mapping[str, Path]:
    """Return the folder or file of each package by its name, and the folder of libraries that a wheel has beside it."""
    found: dict[str, Path] = {}
    for name in names:
        spec = importlib.util.find_spec(name)
        assert spec is not None, name
        assert spec.origin is not None, name
        origin = Path(spec.origin)
        path = origin.parent if spec.submodule_search_locations else origin
        found[path.name] = path
        if libraries and (folder := path.with_name(libraries)).is_dir():
            found[libraries] = folder
    return found
