"""Bytes that come in any size, gathered to pieces: one is worked on while the next is gathered.

So the network, the hashing and the disk wait for each other as little as they can. Two pieces of memory are all that is
held, and they are used again and again: fresh memory for each would cost the system as much as writing it.
"""

import asyncio
from collections.abc import Awaitable, Callable

PIECE = 1024 * 1024
"""Bytes that are written and hashed at a time."""


class Pieces:
    """`add` what comes, then `end`, or `close` when it is given up. One task at a time.

    `work` gets whole pieces, but for the last one before an `end`, one after another; each is its own until it returns.
    """

    def __init__(self, work: Callable[[memoryview], Awaitable[object]]) -> None:
        self._work = work
        self._gathering, self._resting = (memoryview(bytearray(PIECE)) for _ in range(2))
        self._size = 0
        self._working: asyncio.Future[object] | None = None

    async def add(self, data: bytes | bytearray | memoryview) -> None:
        """Raises what the work on an earlier piece raised."""
        at = 0
        with memoryview(data) as view:
            while at < len(view):
                part = view[at : at + PIECE - self._size]
                self._gathering[self._size : self._size + len(part)] = part
                self._size += len(part)
                at += len(part)
                if self._size == PIECE:
                    await self._next()

    async def end(self) -> None:
        """All that was added is worked on when this returns; more may come after it. Raises what the work raises."""
        if self._size:
            await self._next()
        await self._last()

    def take(self) -> bytes:
        """What was gathered, for a caller who works on it himself."""
        piece = bytes(self._gathering[: self._size])
        self._size = 0
        return piece

    async def close(self) -> None:
        """Waits for the work that goes on, whatever becomes of it. Idempotent."""
        if self._working is not None:
            await asyncio.wait([self._working])

    async def _next(self) -> None:
        await self._last()
        piece, self._size = self._gathering[: self._size], 0
        self._gathering, self._resting = self._resting, self._gathering
        self._working = asyncio.ensure_future(self._work(piece))
        self._working.add_done_callback(_seen)

    async def _last(self) -> None:
        if self._working is not None:
            await asyncio.shield(
                self._working
            )  # the work goes on when the caller is cancelled, and `close` waits for it
            self._working = None


async def both(one: Awaitable[object], other: Awaitable[object]) -> None:
    """Both are over when this returns, whichever of them failed: what they work on is used again. Raises its error."""
    for result in await asyncio.gather(one, other, return_exceptions=True):
        if isinstance(result, BaseException):
            raise result


def _seen(done: asyncio.Future[object]) -> None:
    """Whoever comes next is told; when nobody comes, nobody has to be."""
    if not done.cancelled():
        done.exception()
