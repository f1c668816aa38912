"""A process that is watched: the gateway of an engine, a script of the user. Its output goes to a log; when it ends
by itself it is started again, each time a little later.
"""

import asyncio
import signal
import time
from collections.abc import Callable
from contextlib import suppress

from .process_logs import ProcessLog
from .processes import ChildProcess
from .protocol import Json, RequestRefused

BACKOFF, BACKOFF_MOST, STABLE = 1.0, 30.0, 60.0  # seconds; after a stable run the delay starts anew


class WatchedProcess:
    """Running from the moment it is made; `start` raises RequestRefused when that is impossible."""

    def __init__(self, start: Callable[[], ChildProcess], log: ProcessLog, *, restart: bool) -> None:
        self._start, self._log, self._restart = start, log, restart
        self.state, self._restarts = "running", 0
        self._code: int | None = None
        self._stopping = asyncio.Event()
        self._child: ChildProcess | None = start()
        self._began = time.time()
        self._task = asyncio.create_task(self._run())

    async def stop(self, grace: float) -> None:
        """SIGTERM to its group, SIGKILL to all that is left after `grace`; returns when the last one is gone."""
        self._stopping.set()
        if child := self._child:
            child.signal(signal.SIGTERM)
            await asyncio.wait({child.ended}, timeout=grace)
            child.signal(signal.SIGKILL)
        await asyncio.wait({self._task})

    def view(self) -> Json:
        pid = self._child.pid if self._child else None
        times = {"startedAt": self._began, "restarts": self._restarts}
        return {"state": self.state, "pid": pid, "exitCode": self._code, **times}

    async def _run(self) -> None:
        delay = BACKOFF
        while True:
            await self._attend()
            if self._stopping.is_set() or not self._restart:
                break
            delay = BACKOFF if time.time() - self._began > STABLE else delay
            self._note(f"exited with code {self._code}, starts again in {delay:.0f} s")
            if await self._stop_requested(delay):
                break
            self._again()
            delay = min(delay * 2, BACKOFF_MOST)
        self.state = "exited"

    async def _attend(self) -> None:
        if child := self._child:
            async for data in child.output(child.outputs[0]):
                self._log.feed(data)
            self._code = await child.ended
            await child.kill()  # what it left behind
            child.close()
            self._child = None
            self._log.flush()

    async def _stop_requested(self, delay: float) -> bool:
        self.state = "backoff"
        with suppress(TimeoutError):
            async with asyncio.timeout(delay):
                return await self._stopping.wait()
        return False

    def _again(self) -> None:
        self._restarts, self._began = self._restarts + 1, time.time()
        try:
            self._child = self._start()
            self.state = "running"
        except RequestRefused as problem:
            self._note(str(problem))

    def _note(self, text: str) -> None:
        self._log.add(f"[warden] {text}".encode())
