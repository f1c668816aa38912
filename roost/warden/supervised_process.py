"""Supervised processes, such as the gateway of an engine: their output goes to a log, and they are restarted.

A log has a ring of lines, a rotated file in the home, and followers. All are bounded: long lines are cut, old lines are
dropped, and a follower that lags is disconnected.
"""

from __future__ import annotations

import codecs
import time
from itertools import chain

from .event_loop import Future
from .files import open_log
from .light_imports import os, signal, suppress
from .protocol import RequestRefused
from .waiting import create_background_task, wait_until_done

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from .processes import ChildProcess
    from .protocol import Json

RESTART_DELAY, MAX_RESTART_DELAY, STABLE_SECONDS = 1.0, 30.0, 60.0  # seconds; a stable run resets the delay
MAX_LINE_BYTES = 16 * 1024
RING_LINES, RING_BYTES = 1000, 1 << 20
FILE_BYTES = 1 << 20
QUEUE_LINES = 256

Line = tuple[float, str, str]  # seconds since the epoch, source, text


class LogFollower:
    """Bounded queue of the lines of one source (None: all sources); `on_lag` is called once when it is full."""

    def __init__(self, source: str | None, on_lag: Callable[[], object]) -> None:
        self.source, self._on_lag = source, on_lag
        self._lines: list[Line] = []
        self._arrival = Future[None]()

    def add_line(self, line: Line) -> bool:
        """Return whether the queue had space for the line."""
        has_space = len(self._lines) < QUEUE_LINES
        if has_space:
            self._lines.append(line)
            self._arrival.set_result(None)
        else:
            self._on_lag()
        return has_space

    async def take_lines(self) -> list[Line]:
        """Wait for lines, and remove and return all."""
        await self._arrival
        lines, self._lines, self._arrival = self._lines, [], Future[None]()
        return lines


class ProcessLogs:
    """Logs of a container by source."""

    def __init__(self, home: str) -> None:
        self._home = home
        self._sources: dict[str, ProcessLog] = {}
        self.followers: set[LogFollower] = set()

    def get_log(self, source: str) -> ProcessLog:
        return self._sources.setdefault(source, ProcessLog(source, self._home, self._publish))

    def log_message(self, text: str) -> None:
        """Log a line of the warden itself."""
        self.get_log("warden").add_lines(text.encode())

    def last_lines(self, source: str | None, limit: int) -> list[Line]:
        sources = [log.lines for name, log in self._sources.items() if source in {None, name}]
        return sorted(chain(*sources), key=lambda line: line[0])[-limit:] if limit > 0 else []

    def _publish(self, line: Line) -> None:
        for follower in [follower for follower in self.followers if follower.source in {None, line[1]}]:
            if not follower.add_line(line):
                self.followers.discard(follower)


class ProcessLog:
    """Log of one source."""

    def __init__(self, source: str, home: str, publish: Callable[[Line], None]) -> None:
        self.source, self._home, self._publish = source, home, publish
        self.lines: list[Line] = []
        self._size, self._part = 0, b""
        self._file: int | None = None
        self._written = 0

    def feed(self, data: bytes) -> None:
        """Add a chunk of output, which may end within a line."""
        *whole, part = (self._part + data).split(b"\n")
        self._part = part[: MAX_LINE_BYTES + 1]  # one byte over the limit marks a longer line
        self.add_lines(*whole)

    def flush(self) -> None:
        """Add the text after the last line end as a line."""
        part, self._part = self._part, b""
        if part:
            self.add_lines(part)

    def add_lines(self, *lines: bytes) -> None:
        now = time.time()
        for line in lines:
            is_cut = len(line) > MAX_LINE_BYTES  # a character that the cut divides is left out
            text = codecs.getincrementaldecoder("utf-8")("replace").decode(line[:MAX_LINE_BYTES], not is_cut)
            text = text.rstrip("\r") + (" [cut]" if is_cut else "")
            self.lines.append((now, self.source, text))
            self._size += len(text)
            self._publish(self.lines[-1])
        while len(self.lines) > RING_LINES or self._size > RING_BYTES:
            self._size -= len(self.lines.pop(0)[2])
        stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ ", time.gmtime(now)).encode()
        with suppress(OSError, RequestRefused):  # the ring has the lines even if the file cannot be written
            self._append(b"".join(stamp + line[:MAX_LINE_BYTES] + b"\n" for line in lines))

    def _append(self, data: bytes) -> None:
        full = self._file is not None and self._written + len(data) > FILE_BYTES
        if self._file is None or full:
            previous, self._file = self._file, None
            if previous is not None:
                os.close(previous)
            self._file = open_log(self._home, f"{self.source}.log", rotate=full)
            self._written = os.fstat(self._file).st_size
        self._written += os.write(self._file, data)


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
            self.state = "backoff"
            await wait_until_done(self._stopping, seconds=delay)
            if self._stopping.done():
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

    def _start_again(self) -> None:
        self._restarts, self._started = self._restarts + 1, time.time()
        try:
            self._child = self._start()
            self.state = "running"
        except RequestRefused as problem:
            self._log_message(str(problem))

    def _log_message(self, text: str) -> None:
        self._log.add_lines(f"[warden] {text}".encode())
