"""Pipeline of fixed-size pieces: hash and write earlier pieces while the next one is received.

Each piece is processed in a thread (hashed, parsed) and written at the same time, so the network, the hashing and the
disk rarely wait for each other. Three reused buffers bound the memory; they are page-aligned for direct I/O, and
allocating new ones would cost as much as writing them.
"""

import asyncio
import mmap
import threading
from collections import deque
from collections.abc import Awaitable, Callable

PIECE_SIZE = 2 * 1024 * 1024
"""Bytes."""
_BUFFER_COUNT = 3


class ChunkPipeline:
    """Bounded pipeline for one task: `add` bytes, `flush`, and `close` at the end or on failure.

    `process` (in a thread) and `write` receive pieces in order, one at a time; only the last one before a `flush` is
    short. A piece is valid until both have returned. After a failure neither receives another one.
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
        """Whether `process` or `write` has raised."""

    async def add(self, data: bytes | bytearray | memoryview) -> None:
        """Add bytes of any size. Raises the error of an earlier piece as soon as it is known."""
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
        """Process and write all bytes added so far; more may follow. Raises the errors of the work."""
        if self._size:
            await self._submit_buffer()
        while self._pending:
            await self._wait_oldest()

    def take_buffered(self) -> bytes:
        """Return and clear the buffered bytes, which the caller then processes."""
        piece = bytes(self._buffer[: self._size])
        self._size = 0
        return piece

    async def join(self) -> None:
        """Wait for running work, whether it succeeds or fails."""
        if self._pending:
            await asyncio.wait(self._pending)

    async def close(self) -> None:
        """Wait for running work and release the buffers at once, despite reference cycles. Idempotent."""
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
        """Wait for the oldest piece, which continues if the caller is cancelled. Raises its error."""
        await asyncio.shield(self._pending[0])
        self._pending.popleft()

    async def _run_piece(self, buffer: memoryview, piece: memoryview, processed: Awaitable[None]) -> None:
        """Process and write one piece; return when both have ended, because the buffer is reused."""
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
    """Runs functions one at a time in a thread; the thread takes the next one without returning to the event loop."""

    def __init__(self) -> None:
        self._queue: deque[tuple[Callable[[], None], asyncio.Future[None]]] = deque()
        self._lock = threading.Lock()
        self._is_running = False

    def run(self, work: Callable[[], None]) -> asyncio.Future[None]:
        loop = asyncio.get_running_loop()
        done = loop.create_future()
        with self._lock:
            self._queue.append((work, done))
            is_idle, self._is_running = not self._is_running, True
        if is_idle:
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
            del work  # it refers to a buffer, which may be released as soon as the outcome is known
            loop.call_soon_threadsafe(_set_outcome, done, error)


def _set_outcome(done: asyncio.Future[None], error: BaseException | None) -> None:
    if done.done():
        return
    if error is None:
        done.set_result(None)
    else:
        done.set_exception(error)


def _retrieve_exception(done: asyncio.Future[None]) -> None:
    """Mark the exception as retrieved; the next call on the pipeline raises it."""
    if not done.cancelled():
        done.exception()
