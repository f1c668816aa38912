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

PIECE_SIZE = 1024 * 1024
"""Bytes that are looked at and kept at a time."""
_BUFFER_COUNT = 3


class ChunkPipeline:
    """`add` what comes, then `end`; `close` when all is over, or given up. One task at a time.

    `look` (in a thread) and `keep` get whole pieces, but for the last one before an `end`, in their order and one after
    another; a piece is theirs until both have returned. After a failure neither gets any more.
    """

    def __init__(self, process: Callable[[memoryview], None], write: Callable[[memoryview], Awaitable[None]]) -> None:
        self._process = process
        self._write = write
        self._executor = SerialExecutor()
        self._write_lock = asyncio.Lock()
        self._free_buffers = [memoryview(mmap.mmap(-1, PIECE_SIZE)) for _ in range(_BUFFER_COUNT)]
        self._buffer = self._free_buffers.pop()
        self._size = 0
        self._pending: deque[asyncio.Future[None]] = deque()
        self.failed = False
        """Whether something was not looked at or not kept."""

    async def add(self, data: bytes | bytearray | memoryview) -> None:
        """Raises what the work on an earlier piece raised, as soon as it is known."""
        while self.failed:
            await self._wait_oldest()
        at = 0
        with memoryview(data) as view:
            while at < len(view):
                part = view[at : at + PIECE_SIZE - self._size]
                self._buffer[self._size : self._size + len(part)] = part
                self._size += len(part)
                at += len(part)
                if self._size == PIECE_SIZE:
                    await self._submit_buffer()

    async def flush(self) -> None:
        """All that was added is worked on when this returns; more may come after it. Raises what the work raises."""
        if self._size:
            await self._submit_buffer()
        while self._pending:
            await self._wait_oldest()

    def take_buffered(self) -> bytes:
        """What was gathered, for a caller who works on it himself."""
        piece = bytes(self._buffer[: self._size])
        self._size = 0
        return piece

    async def join(self) -> None:
        """Waits for the work that goes on, whatever becomes of it."""
        if self._pending:
            await asyncio.wait(self._pending)

    async def close(self) -> None:
        """Settles, and lets go of the memory at once: whoever looks may hold us, and we hold them. Idempotent."""
        await self.join()
        self._free_buffers.clear()
        self._buffer = memoryview(b"")

    async def _submit_buffer(self) -> None:
        while not self._free_buffers:
            await self._wait_oldest()
        buffer, self._buffer = self._buffer, self._free_buffers.pop()
        piece, self._size = buffer[: self._size], 0
        looked = self._executor.run(lambda: self._process_piece(piece))
        self._pending.append(asyncio.ensure_future(self._run_piece(buffer, piece, looked)))
        self._pending[-1].add_done_callback(_retrieve_exception)

    async def _wait_oldest(self) -> None:
        """The end of the first that is worked on, which goes on when the caller is cancelled. Raises what it raises."""
        await asyncio.shield(self._pending[0])
        self._pending.popleft()

    async def _run_piece(self, buffer: memoryview, piece: memoryview, processed: Awaitable[None]) -> None:
        """Both are over when this returns, whichever of them failed: the memory is used again."""
        results = await asyncio.gather(processed, self._write_piece(piece), return_exceptions=True)
        self._free_buffers.append(buffer)
        for result in results:
            if isinstance(result, BaseException):
                self.failed = True
                raise result

    def _process_piece(self, piece: memoryview) -> None:
        if not self.failed:
            self._process(piece)

    async def _write_piece(self, piece: memoryview) -> None:
        async with self._write_lock:
            if not self.failed:
                await self._write(piece)


class SerialExecutor:
    """Work in a thread, one after another. What is given while something runs begins without a detour."""

    def __init__(self) -> None:
        self._queue: deque[tuple[Callable[[], None], asyncio.Future[None]]] = deque()
        self._lock = threading.Lock()
        self._is_running = False

    def run(self, work: Callable[[], None]) -> asyncio.Future[None]:
        loop = asyncio.get_running_loop()
        done = loop.create_future()
        with self._lock:
            self._queue.append((work, done))
            begins, self._is_running = not self._is_running, True
        if begins:
            loop.run_in_executor(None, self._run_queue, loop)
        return done

    def _run_queue(self, loop: asyncio.AbstractEventLoop) -> None:
        while True:
            with self._lock:
                if not self._queue:
                    self._is_running = False
                    return
                work, done = self._queue.popleft()
            error: BaseException | None = None
            try:
                work()
            except Exception as raised:  # noqa: BLE001 - raised again where it is awaited
                error = raised
            loop.call_soon_threadsafe(_set_outcome, done, error)


def _set_outcome(done: asyncio.Future[None], error: BaseException | None) -> None:
    if done.done():
        return
    if error is None:
        done.set_result(None)
    else:
        done.set_exception(error)


def _retrieve_exception(done: asyncio.Future[None]) -> None:
    """Whoever comes next is told; when nobody comes, nobody has to be."""
    if not done.cancelled():
        done.exception()
