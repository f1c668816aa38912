"""Images made by Pillow, in a few processes that are kept, each for one image at a time. One that takes too long, or
that its source ended, is replaced.
"""

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
_WAITING = 32
_SECONDS = 10.0
_MOST = 256 * 1024**2
_REFUSALS: dict[str, type[Problem]] = {"invalid": InvalidImage, "large": ImageTooLarge, "kind": UnsupportedImage}


class PillowRenderer(ImageRenderer):
    def __init__(self) -> None:
        self._idle: list[Process] = []
        self._places = asyncio.Semaphore(_PROCESSES)
        self._waiting = 0

    async def render(self, source: bytes, wanted: ImageOptions) -> RenderedImage:
        if len(source) > SOURCE_LIMIT:
            raise ImageTooLarge
        if self._waiting >= _WAITING:
            raise TooManyImages(retry_after=1)
        self._waiting += 1
        try:
            async with self._places, self._worker() as worker, asyncio.timeout(_SECONDS):
                return await _asked(worker, source, wanted)
        except TimeoutError:
            raise ImageTooLarge from None
        finally:
            self._waiting -= 1

    async def close(self) -> None:
        idle, self._idle = self._idle, []
        for worker in idle:
            await _end(worker)

    async def _kept(self) -> Process | None:
        """One of those that are kept, if it did not end meanwhile."""
        while self._idle:
            worker = self._idle.pop()
            if worker.returncode is None:
                return worker
            await _end(worker)
        return None

    @asynccontextmanager
    async def _worker(self) -> AsyncGenerator[Process]:
        """A process for one image; it is kept for the next if it answered."""
        worker = await self._kept() or await _begin()
        is_well = False
        try:
            yield worker
            is_well = True
        except _WorkerDied:
            raise
        except Problem:
            is_well = True
            raise
        finally:
            if is_well:
                self._idle.append(worker)
            else:
                await _end(worker)


async def _begin() -> Process:
    program = (sys.executable, "-I", str(_PROGRAM))
    return await asyncio.create_subprocess_exec(*program, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, env={}, cwd="/")


async def _end(worker: Process) -> None:
    with contextlib.suppress(ProcessLookupError):
        worker.kill()
    if worker.stdin is not None:
        worker.stdin.close()
    await worker.wait()


async def _asked(worker: Process, source: bytes, wanted: ImageOptions) -> RenderedImage:
    assert worker.stdin is not None
    assert worker.stdout is not None
    question = {"size": len(source), "wanted": asdict(wanted), "pixels": PIXEL_LIMIT, "side": SIDE_LIMIT}
    try:
        worker.stdin.write(json.dumps(question).encode() + b"\n")
        worker.stdin.write(source)
        await worker.stdin.drain()
        head: dict[str, Any] = json.loads(await worker.stdout.readuntil(b"\n"))
        if "refused" in head:
            raise _REFUSALS[head["refused"]]
        data = await worker.stdout.readexactly(min(_MOST, head["size"]))
    except (OSError, EOFError, ValueError):
        raise _WorkerDied from None
    return RenderedImage(str(head["mime"]), data)


class _WorkerDied(InvalidImage):
    """The process ended over this source, or said something else than an answer."""
