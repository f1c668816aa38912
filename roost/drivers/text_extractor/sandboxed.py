"""Text extractor that reads documents in a few reusable sandboxes."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from roost.core import log
from roost.core.problem import Problem
from roost.drivers.runtime.contract import ContainerLimits, RuntimeFailed
from roost.drivers.sandbox.contract import Sandbox, SandboxProcess, SandboxProgram
from roost.drivers.sandbox.worker_pool import WorkerPool, WorkersBusy, find_packages, read_answer
from roost.drivers.text_extractor.contract import (
    SOURCE_LIMIT,
    TEXT_LIMIT,
    TIME_LIMIT_SECONDS,
    UNPACKED_LIMIT,
    DocumentTooLarge,
    ExtractionUnavailable,
    InvalidDocument,
    TextExtractor,
    TooManyDocuments,
    UnsupportedDocument,
)
from roost.drivers.text_extractor.formats.detection import RefusalReason
from roost.drivers.text_extractor.normalization import is_normal

_log = log.get_logger("text_extractor")
_PROGRAM = Path(__file__).with_name("worker.py")
_PACKAGES = """
    roost pypdf Crypto docx pptx openpyxl et_xmlfile lxml charset_normalizer xlsxwriter typing_extensions
""".split()  # python-docx and python-pptx import the last two, as they do Pillow
_MEMORY_BYTES = 1024**3 + 256 * 1024**2
"""A document's own limit, and what the worker's process holds beside it: its libraries and a text."""
_MAX_ANSWER_BYTES = 4 * TEXT_LIMIT + 1024
_PROCESSES = 2
_MAX_WAITING = 32
_IDLE_SECONDS = 300.0
_TRANSFER_SECONDS = 120.0
"""Time for a source to arrive, during which no other document has its worker."""
_MAX_NAME_LENGTH = 1000
_PROBLEMS: Mapping[RefusalReason, tuple[type[Problem], str | None]] = {
    RefusalReason.UNSUPPORTED: (UnsupportedDocument, None),
    RefusalReason.DAMAGED: (InvalidDocument, None),
    RefusalReason.ENCRYPTED: (InvalidDocument, "The document is encrypted"),
    RefusalReason.DEPTH: (InvalidDocument, "The elements of the document are nested too deeply"),
    RefusalReason.TEXT_SIZE: (DocumentTooLarge, f"The text of the document has more than {TEXT_LIMIT:,} characters"),
    RefusalReason.UNPACKED_SIZE: (DocumentTooLarge, f"The document unpacks to more than {UNPACKED_LIMIT:,} bytes"),
    RefusalReason.MEMORY: (DocumentTooLarge, "Reading the document takes too much memory"),
}


class SandboxedExtractor(TextExtractor):
    def __init__(self, sandbox: Sandbox) -> None:
        limits = ContainerLimits(memory_bytes=_MEMORY_BYTES, cpus=1.0, pids=128, file_bytes=1024**2, open_files=64)
        packages = {**find_packages(*_PACKAGES), **find_packages("PIL", libraries="pillow.libs")}
        self._workers = WorkerPool(
            sandbox,
            SandboxProgram(_PROGRAM, packages, limits),
            processes=_PROCESSES,
            max_waiting=_MAX_WAITING,
            idle_seconds=_IDLE_SECONDS,
        )

    async def extract_text(self, source: AsyncIterator[bytes], size: int, name: str, mime_type: str) -> str:
        if size > SOURCE_LIMIT:
            raise DocumentTooLarge(f"The document has {size:,} bytes; the limit is {SOURCE_LIMIT:,}")
        request = {"size": size, "name": name[-_MAX_NAME_LENGTH:], "mime_type": mime_type[:_MAX_NAME_LENGTH]}
        try:
            answer = await self._workers.request(partial(_exchange, source=source, request=request))
        except WorkersBusy:
            raise TooManyDocuments(retry_after=1) from None
        except RuntimeFailed as error:
            _log.error("extraction_worker.failed", reason=error.message)  # it may name paths of this machine
            raise ExtractionUnavailable(retry_after=5) from None
        return _parse_answer(answer)

    async def close(self) -> None:
        await self._workers.close()


async def _exchange(worker: SandboxProcess, source: AsyncIterator[bytes], request: Mapping[str, Any]) -> bytes:
    limit = asyncio.timeout(_TRANSFER_SECONDS)
    try:
        async with limit:
            await _send_source(worker, source, request)
    except TimeoutError:
        if not limit.expired():
            raise
        raise ExtractionUnavailable(retry_after=5) from None
    return await _receive(worker)


async def _send_source(worker: SandboxProcess, source: AsyncIterator[bytes], request: Mapping[str, Any]) -> None:
    """Send a request with exactly as many bytes as it announces."""
    await _send(worker, json.dumps(request).encode() + b"\n")
    rest = request["size"]
    async for piece in source:
        rest -= len(piece)
        if rest < 0:
            break
        await _send(worker, piece)
    if rest:
        raise InvalidDocument("The document has another size than the one that was announced")


async def _send(worker: SandboxProcess, data: bytes) -> None:
    worker.writer.write(data)
    try:
        await worker.writer.drain()
    except ConnectionError:
        raise InvalidDocument from None  # the worker has ended while it had this source


async def _receive(worker: SandboxProcess) -> bytes:
    try:
        async with asyncio.timeout(TIME_LIMIT_SECONDS):
            answer = await read_answer(worker, _MAX_ANSWER_BYTES)
    except TimeoutError:
        raise DocumentTooLarge(f"Reading the document takes more than {TIME_LIMIT_SECONDS:.0f} s") from None
    except (ConnectionError, EOFError, ValueError):
        raise InvalidDocument from None
    if not answer:  # its process has ended, and may not have read all of the source
        raise InvalidDocument
    return answer


def _parse_answer(answer: bytes) -> str:
    """Return the text of an answer, which a document may have forged."""
    line, _, content = answer.partition(b"\n")
    try:
        head: dict[str, Any] = json.loads(line)
        if (refused := head.get("refused")) is not None:
            kind, message = _PROBLEMS[RefusalReason(refused)]
            raise kind(message)
        text = content.decode()
    except (ValueError, AttributeError, TypeError, RecursionError):
        raise InvalidDocument from None
    if len(text) > TEXT_LIMIT or not is_normal(text):
        raise InvalidDocument
    return text
