"""Supervised processes, such as the gateway of an engine: their output goes to a log, and they are restarted."""

from __future__ import annotations

import time

from .event_loop import Future
from .light_imports import signal
from .protocol import RequestRefused
from .waiting import create_background_task, wait_until_done

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from .process_logs import ProcessLog
    from .processes import ChildProcess
    from .protocol import Json

RESTART_DELAY, MAX_RESTART_DELAY, STABLE_SECONDS = 1.0, 30.0, 60.0  # seconds; a stable run resets the delay


class SupervisedProcess:
    """Process that runs from its creation on; `start` raises RequestRefused if it cannot be started."""

    def __init__(self, start: Callable[[], ChildProcess], log: ProcessLog, *, restart: bool) -> None:
        self._start, self._log, self._restart = start, log, restart
        self.state, self._restarts = "running", 0
        self._code: int | None = None
        self._stopping = Future[None]()
        self._child: ChildProcess | None = start()
        self._started = time.time()
        self._task = create_background_task(self._run())

    async def stop(self, grace: float) -> None:
        """Send SIGTERM, after `grace` seconds SIGKILL; return when all its processes are gone."""
        self._stopping.set_result(None)
        if child := self._child:
            child.signal(signal.SIGTERM)
            await wait_until_done(child.ended, seconds=grace)
            child.signal(signal.SIGKILL)
        await wait_until_done(self._task)

    def to_json(self) -> Json:
        pid = self._child.pid if self._child else None
        times = {"startedAt": self._started, "restarts": self._restarts}
        return {"state": self.state, "pid": pid, "exitCode": self._code, **times}

    async def _run(self) -> None:
        delay = RESTART_DELAY
        while True:
            await self._follow_output()
            if self._stopping.done() or not self._restart:
                break
            delay = RESTART_DELAY if time.time() - self._started > STABLE_SECONDS else delay
            self._log_message(f"exited with code {self._code}, restarts in {delay:.0f} s")
            if await self._stop_requested(delay):
                break
            self._start_again()
            delay = min(delay * 2, MAX_RESTART_DELAY)
        self.state = "exited"

    async def _follow_output(self) -> None:
        if child := self._child:
            async for data in child.output(child.outputs[0]):
                self._log.feed(data)
            self._code = await child.ended
            await child.kill()  # its remaining descendants
            child.close()
            self._child = None
            self._log.flush()

    async def _stop_requested(self, delay: float) -> bool:
        self.state = "backoff"
        await wait_until_done(self._stopping, seconds=delay)
        return self._stopping.done()

    def _start_again(self) -> None:
        self._restarts, self._started = self._restarts + 1, time.time()
        try:
            self._child = self._start()
            self.state = "running"
        except RequestRefused as problem:
            self._log_message(str(problem))

    def _log_message(self, text: str) -> None:
        self._log.add_lines(f"[warden] {text}".encode())
