"""What watched processes print: a bounded ring of lines for each source, a rotated file in the home that the owner can
read, and followers. Refuses to grow: long lines are cut, old ones go, a follower that lags is let go.
"""

import asyncio
import heapq
import os
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress

from .files import open_log
from .protocol import RequestRefused

LINE = 16 * 1024
RING_LINES, RING_BYTES = 1000, 1 << 20
FILE_BYTES = 1 << 20
QUEUE = 256

Line = tuple[float, str, str]  # seconds since the epoch, source, text


class LogFollower:
    """A bounded queue of the lines of one source (None: of all); `lagged` is called once when it is full."""

    def __init__(self, source: str | None, lagged: Callable[[], object]) -> None:
        self.source, self.lagged = source, lagged
        self.lines: asyncio.Queue[Line] = asyncio.Queue(QUEUE)


class ProcessLogs:
    """The logs of a container, by source."""

    def __init__(self, home: str) -> None:
        self._home = home
        self._sources: dict[str, ProcessLog] = {}
        self.followers: set[LogFollower] = set()

    def of(self, source: str) -> "ProcessLog":
        if source not in self._sources:
            self._sources[source] = ProcessLog(source, self._home, self._publish)
        return self._sources[source]

    def note(self, text: str) -> None:
        """A line of the warden itself."""
        self.of("warden").add(text.encode())

    def last(self, source: str | None, limit: int) -> list[Line]:
        chosen = [log.lines for name, log in self._sources.items() if source in {None, name}]
        return list(heapq.merge(*chosen, key=lambda line: line[0]))[-limit:] if limit > 0 else []

    def _publish(self, line: Line) -> None:
        for follower in [one for one in self.followers if one.source in {None, line[1]}]:
            try:
                follower.lines.put_nowait(line)
            except asyncio.QueueFull:
                self.followers.discard(follower)
                follower.lagged()


class ProcessLog:
    """The lines of one source."""

    def __init__(self, source: str, home: str, publish: Callable[[Line], None]) -> None:
        self.source, self._home, self._publish = source, home, publish
        self.lines: deque[Line] = deque()
        self._size, self._part = 0, b""
        self._file: int | None = None
        self._written = 0

    def feed(self, data: bytes) -> None:
        """Output as it comes, cut anywhere."""
        *whole, part = (self._part + data).split(b"\n")
        self._part = part[: LINE + 1]  # one byte over the limit stands for "was longer"
        self.add(*whole)

    def flush(self) -> None:
        """What came after the last line end is a line too."""
        part, self._part = self._part, b""
        if part:
            self.add(part)

    def add(self, *lines: bytes) -> None:
        now = time.time()
        for line in lines:
            text = line[:LINE].decode(errors="replace").rstrip("\r") + (" [cut]" if len(line) > LINE else "")
            self.lines.append((now, self.source, text))
            self._size += len(text)
            self._publish(self.lines[-1])
        while len(self.lines) > RING_LINES or self._size > RING_BYTES:
            self._size -= len(self.lines.popleft()[2])
        stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ ", time.gmtime(now)).encode()
        with suppress(OSError, RequestRefused):  # a file that cannot be written stops nobody: the ring has the lines
            self._save(b"".join(stamp + line[:LINE] + b"\n" for line in lines))

    def _save(self, data: bytes) -> None:
        full = self._file is not None and self._written + len(data) > FILE_BYTES
        if self._file is None or full:
            former, self._file = self._file, None
            if former is not None:
                os.close(former)
            self._file = open_log(self._home, f"{self.source}.log", rotate=full)
            self._written = os.fstat(self._file).st_size
        self._written += os.write(self._file, data)
