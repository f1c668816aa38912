"""Image renderer that runs Pillow in a few reusable worker processes; a worker that hangs or dies is replaced."""

import asyncio
import contextlib
import json
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from roost.core.problem import Problem
from roost.drivers.image.contract import (
    PIXEL_LIMIT,
    SIDE_LIMIT,
    SOURCE_LIMIT,
    ImageOptions,
    ImageRenderer,
    ImageTooLarge,
    InvalidImage,
    RenderedImage,
    TooManyImages,
    UnsupportedImage,
)

_PROGRAM = Path(__file__).with_name("worker.py")
_PROCESSES = 2
_MAX_WAITING = 32
_TIMEOUT_SECONDS = 10.0
_MAX_RESULT_BYTES = 256 * 1024**2
_PROBLEMS: dict[str, type[Problem]] = {"invalid": InvalidImage, "large": ImageTooLarge, "kind": UnsupportedImage}


class PillowRenderer(ImageRenderer):
    def __init__(self) -> None:
        self._idle: list[Process] = []
        self._slots = asyncio.Semaphore(_PROCESSES)
        self._waiting = 0

    async def render(self, source: bytes, options: ImageOptions) -> RenderedImage:
        if len(source) > SOURCE_LIMIT:
            raise ImageTooLarge
        if self._waiting >= _MAX_WAITING:
            raise TooManyImages(retry_after=1)
        self._waiting += 1
        try:
            async with self._slots, self._worker() as worker, asyncio.timeout(_TIMEOUT_SECONDS):
                return await _request_image(worker, source, options)
        except TimeoutError:
            raise ImageTooLarge from None
        finally:
            self._waiting -= 1

    async def close(self) -> None:
        idle, self._idle = self._idle, []
        for worker in idle:
            await _stop_worker(worker)

    async def _take_idle(self) -> Process | None:
        """Return an idle worker that still runs, if there is one."""
        while self._idle:
            worker = self._idle.pop()
            if worker.returncode is None:
                return worker
            await _stop_worker(worker)
        return None

    @asynccontextmanager
    async def _worker(self) -> AsyncGenerator[Process]:
        """Provide a worker for one image, and keep it for the next one if it answered."""
        worker = await self._take_idle() or await _start_worker()
        is_reusable = False
        try:
            yield worker
            is_reusable = True
        except _WorkerDied:
            raise
        except Problem:
            is_reusable = True
            raise
        finally:
            if is_reusable:
                self._idle.append(worker)
            else:
                await _stop_worker(worker)


async def _start_worker() -> Process:
    program = (sys.executable, "-I", str(_PROGRAM))
    return await asyncio.create_subprocess_exec(*program, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, env={}, cwd="/")


async def _stop_worker(worker: Process) -> None:
    with contextlib.suppress(ProcessLookupError):
        worker.kill()
    if worker.stdin is not None:
        worker.stdin.close()
    await worker.wait()


async def _request_image(worker: Process, source: bytes, options: ImageOptions) -> RenderedImage:
    assert worker.stdin is not None
    assert worker.stdout is not None
    request = {"size": len(source), "options": asdict(options), "pixels": PIXEL_LIMIT, "side": SIDE_LIMIT}
    try:
        worker.stdin.write(json.dumps(request).encode() + b"\n")
        worker.stdin.write(source)
        await worker.stdin.drain()
        head: dict[str, Any] = json.loads(await worker.stdout.readuntil(b"\n"))
        if "refused" in head:
            raise _PROBLEMS[head["refused"]]
        data = await worker.stdout.readexactly(min(_MAX_RESULT_BYTES, head["size"]))
    except (OSError, EOFError, ValueError):
        raise _WorkerDied from None
    return RenderedImage(str(head["mime"]), data)


class _WorkerDied(InvalidImage):
    """The worker died on this source or sent a malformed answer."""
