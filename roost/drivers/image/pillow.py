"""Image renderer that runs Pillow in a few reusable sandboxes; one that hangs or dies is replaced."""

import asyncio
import json
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from roost.core import log
from roost.core.problem import Problem
from roost.drivers.image.contract import (
    PIXEL_LIMIT,
    RESULT_LIMIT,
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
from roost.drivers.sandbox.worker_pool import WorkerPool, WorkersBusy, find_packages, read_answer

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
        packages = find_packages("roost", "PIL", libraries="pillow.libs")
        program = SandboxProgram(_PROGRAM, packages, limits)
        self._workers = WorkerPool(sandbox, program, processes=_PROCESSES, max_waiting=_MAX_WAITING)

    async def render(self, source: bytes, options: ImageOptions) -> RenderedImage:
        if len(source) > SOURCE_LIMIT:
            raise ImageTooLarge
        try:
            return _parse_answer(await self._workers.request(partial(_request_image, source=source, options=options)))
        except WorkersBusy:
            raise TooManyImages(retry_after=1) from None
        except RuntimeFailed as error:
            _log.error("image_worker.failed", reason=error.message)  # it may name paths of this machine
            raise ImagesUnavailable from None

    async def close(self) -> None:
        await self._workers.close()


async def _request_image(worker: SandboxProcess, source: bytes, options: ImageOptions) -> bytes:
    request = {"size": len(source), "options": asdict(options), "pixels": PIXEL_LIMIT, "side": SIDE_LIMIT}
    try:
        async with asyncio.timeout(_TIMEOUT_SECONDS):
            worker.writer.write(json.dumps(request).encode() + b"\n")
            worker.writer.write(source)
            await worker.writer.drain()
            return await read_answer(worker, RESULT_LIMIT)
    except TimeoutError:
        raise ImageTooLarge from None
    except (OSError, EOFError, ValueError):
        raise InvalidImage from None  # the worker ended while it had this source


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
