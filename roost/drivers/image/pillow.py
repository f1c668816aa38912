"""Image renderer that runs Pillow in a few reusable sandboxes; one that hangs or dies is replaced."""

import asyncio
import importlib.util
import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from roost.core import log
from roost.core.problem import Problem
from roost.drivers.image.contract import (
    PIXEL_LIMIT,
    SIDE_LIMIT,
    SOURCE_LIMIT,
    ImageOptions,
    ImageRenderer,
    ImagesUnavailable,
    ImageTooLarge,
    InvalidImage,
    RenderedImage,
    TooManyImages,
    UnsupportedImage,
)
from roost.drivers.runtime.contract import ContainerLimits, RuntimeFailed
from roost.drivers.sandbox.contract import Sandbox, SandboxProcess, SandboxProgram

_log = log.get_logger("images")
_PROGRAM = Path(__file__).with_name("worker.py")
_MEMORY_BYTES = 1024**3 + 384 * 1024**2
"""An image's own limit, and what the worker's process holds beside it: its libraries, a source and a result."""
_PROCESSES = 2
_MAX_WAITING = 32
_TIMEOUT_SECONDS = 10.0
_MIME_TYPES = ("image/jpeg", "image/png", "image/gif", "image/webp", "image/avif")
_PROBLEMS: dict[str, type[Problem]] = {"invalid": InvalidImage, "large": ImageTooLarge, "kind": UnsupportedImage}


class PillowRenderer(ImageRenderer):
    def __init__(self, sandbox: Sandbox) -> None:
        limits = ContainerLimits(memory_bytes=_MEMORY_BYTES, cpus=1.0, pids=128, file_bytes=1024**2, open_files=64)
        self._program = SandboxProgram(_PROGRAM, _packages(), limits)
        self._sandbox = sandbox
        self._idle: list[SandboxProcess] = []
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
        except RuntimeFailed as error:
            _log.error("image_worker.failed", reason=error.message)  # it may name paths of this machine
            raise ImagesUnavailable from None
        finally:
            self._waiting -= 1

    async def close(self) -> None:
        idle, self._idle = self._idle, []
        for worker in idle:
            await worker.kill()

    async def _take_idle(self) -> SandboxProcess | None:
        """Return an idle worker that still runs, if there is one."""
        while self._idle:
            worker = self._idle.pop()
            if worker.is_alive():
                return worker
            await worker.kill()
        return None

    @asynccontextmanager
    async def _worker(self) -> AsyncGenerator[SandboxProcess]:
        """Provide a worker for one image, and keep it for the next one if it answered."""
        worker = await self._take_idle() or await self._sandbox.start(self._program)
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
                await worker.kill()


def _packages() -> Mapping[str, Path]:
    """Return the folders of Pillow, and of the libraries that its wheel has beside it."""
    found = importlib.util.find_spec("PIL")  # without an import: the server decodes no images
    assert found is not None
    assert found.origin is not None
    pillow = Path(found.origin).parent
    folders = (pillow, pillow.with_name("pillow.libs"))
    return {folder.name: folder for folder in folders if folder.is_dir()}


async def _request_image(worker: SandboxProcess, source: bytes, options: ImageOptions) -> RenderedImage:
    request = {"size": len(source), "options": asdict(options), "pixels": PIXEL_LIMIT, "side": SIDE_LIMIT}
    try:
        worker.writer.write(json.dumps(request).encode() + b"\n")
        worker.writer.write(source)
        await worker.writer.drain()
        size = int(await worker.reader.readuntil(b"\n"))
        answer = await worker.reader.readexactly(size)
    except (OSError, EOFError):
        raise _WorkerDied from None
    return _parse_answer(answer)


def _parse_answer(answer: bytes) -> RenderedImage:
    """Return the image of an answer, which an image may have forged."""
    line, _, data = answer.partition(b"\n")
    try:
        head: dict[str, Any] = json.loads(line)
        if "refused" in head:
            raise _PROBLEMS[head["refused"]]
        mime = head["mime"]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise InvalidImage from None
    if mime not in _MIME_TYPES:
        raise InvalidImage
    return RenderedImage(mime, data)


class _WorkerDied(InvalidImage):
    """The worker ended while it had this source."""
