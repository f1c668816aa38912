"""Bytes that come in any size, gathered to pieces: while the next one is gathered, those before it are worked on.

Each piece is looked at in a thread (hashed, read) and kept (written), side by side, and the next waits in line already:
so the network, the hashing and the disk wait for each other as little as they can. Three pieces of memory are all that
is held, whole pages, so that disks can take them directly, and used again and again: fresh memory for each would cost
the system as much as writing it.
"""

import asyncio
import mmap
import threading
from collections import deque
from collections.abc import Awaitable, Callable

PIECE = 1024 * 1024
"""Bytes that are looked at and kept at a time."""
_HELD = 3


class ChunkPipeline:
    """`add` what comes, then `end`; `close` when all is over, or given up. One task at a time.

    `look` (in a thread) and `keep` get whole pieces, but for the last one before an `end`, in their order and one after
    another; a piece is theirs until both have returned. After a failure neither gets any more.
    """

    def __init__(self, look: Callable[[memoryview], None], keep: Callable[[memoryview], Awaitable[None]]) -> None:
        self._look = look
        self._keep = keep
        self._lane = SerialExecutor()
        self._keeping = asyncio.Lock()
        self._free = [memoryview(mmap.mmap(-1, PIECE)) for _ in range(_HELD)]
        self._gathering = self._free.pop()
        self._size = 0
        self._working: deque[asyncio.Future[None]] = deque()
        self.failed = False
        """Whether something was not looked at or not kept."""

    async def add(self, data: bytes | bytearray | memoryview) -> None:
        """Raises what the work on an earlier piece raised, as soon as it is known."""
        while self.failed:
            await self._first()
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
        while self._working:
            await self._first()

    def take(self) -> bytes:
        """What was gathered, for a caller who works on it himself."""
        piece = bytes(self._gathering[: self._size])
        self._size = 0
        return piece

    async def settle(self) -> None:
        """Waits for the work that goes on, whatever becomes of it."""
        if self._working:
            await asyncio.wait(self._working)

    async def close(self) -> None:
        """Settles, and lets go of the memory at once: whoever looks may hold us, and we hold them. Idempotent."""
        await self.settle()
        self._free.clear()
        self._gathering = memoryview(b"")

    async def _next(self) -> None:
        while not self._free:
            await self._first()
        buffer, self._gathering = self._gathering, self._free.pop()
        piece, self._size = buffer[: self._size], 0
        looked = self._lane.run(lambda: self._looked(piece))
        self._working.append(asyncio.ensure_future(self._work(buffer, piece, looked)))
        self._working[-1].add_done_callback(_seen)

    async def _first(self) -> None:
        """The end of the first that is worked on, which goes on when the caller is cancelled. Raises what it raises."""
        await asyncio.shield(self._working[0])
        self._working.popleft()

    async def _work(self, buffer: memoryview, piece: memoryview, looked: Awaitable[None]) -> None:
        """Both are over when this returns, whichever of them failed: the memory is used again."""
        results = await asyncio.gather(looked, self._kept(piece), return_exceptions=True)
        self._free.append(buffer)
        for result in results:
            if isinstance(result, BaseException):
                self.failed = True
                raise result

    def _looked(self, piece: memoryview) -> None:
        if not self.failed:
            self._look(piece)

    async def _kept(self, piece: memoryview) -> None:
        async with self._keeping:
            if not self.failed:
                await self._keep(piece)


class SerialExecutor:
    """Work in a thread, one after another. What is given while something runs begins without a detour."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[Callable[[], None], asyncio.Future[None]]] = deque()
        self._lock = threading.Lock()
        self._runs = False

    def run(self, work: Callable[[], None]) -> asyncio.Future[None]:
        loop = asyncio.get_running_loop()
        done = loop.create_future()
        with self._lock:
            self._waiting.append((work, done))
            begins, self._runs = not self._runs, True
        if begins:
            loop.run_in_executor(None, self._all, loop)
        return done

    def _all(self, loop: asyncio.AbstractEventLoop) -> None:
        while True:
            with self._lock:
                if not self._waiting:
                    self._runs = False
                    return
                work, done = self._waiting.popleft()
            error: BaseException | None = None
            try:
                work()
            except Exception as raised:  # noqa: BLE001 - raised again where it is awaited
                error = raised
            loop.call_soon_threadsafe(_settle, done, error)


def _settle(done: asyncio.Future[None], error: BaseException | None) -> None:
    if done.done():
        return
    if error is None:
        done.set_result(None)
    else:
        done.set_exception(error)


def _seen(done: asyncio.Future[None]) -> None:
    """Whoever comes next is told; when nobody comes, nobody has to be."""
    if not done.cancelled():
        done.exception()
