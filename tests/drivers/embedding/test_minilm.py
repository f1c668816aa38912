"""The program of all-MiniLM-L6-v2 and its process."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bench.processes import read_memory
from roost.drivers.embedding import minilm
from roost.drivers.embedding.contract import EmbeddingFailed, EmbeddingUnavailable
from roost.drivers.embedding.minilm import MiniLMModel
from roost.drivers.runtime.bwrap.sandbox import BwrapSandbox
from tests.conformance.runtimes import until
from tests.drivers.embedding.embedding_server import unpack

pytestmark = pytest.mark.container


@pytest.fixture
async def model(tmp_path: Path) -> AsyncIterator[MiniLMModel]:
    made = MiniLMModel(BwrapSandbox(tmp_path))
    yield made
    await made.close()


async def test_vectors_are_those_of_the_model(model: MiniLMModel) -> None:
    (vector,) = await model.embed_texts(["The quick brown fox jumps over the lazy dog."])
    numbers = unpack(vector)
    assert len(numbers) == 384
    # the model without quantization, as its authors publish it
    assert numbers[:4] == pytest.approx([0.0439, 0.0589, 0.0482, 0.0775], abs=0.03)


async def test_it_starts_with_the_first_text_and_ends_when_it_is_idle(
    model: MiniLMModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not model._workers.idle
    monkeypatch.setattr(model._workers, "_idle_seconds", 0.05)
    await model.embed_texts(["x"])
    (worker,) = model._workers.idle
    await until(lambda: not worker.is_alive())
    await model.embed_texts(["starts again"])


async def test_a_query_does_not_wait_for_a_long_call(model: MiniLMModel) -> None:
    long_call = asyncio.create_task(model.embed_texts(["a few words of a chunk " * 20] * 200))
    await until(lambda: model._workers._waiting == 1)
    await model.embed_texts(["a query"])
    assert not long_call.done()
    long_call.cancel()


async def test_a_process_that_dies_is_replaced_without_an_error(model: MiniLMModel) -> None:
    await model.embed_texts(["x"])
    (worker,) = model._workers.idle
    long_call = asyncio.create_task(model.embed_texts(["a few words of a chunk " * 20] * 40))
    await until(lambda: not model._workers.idle)
    os.kill(worker.pid, signal.SIGKILL)
    assert len(await long_call) == 40
    assert model._workers.idle[0].pid != worker.pid


async def test_a_batch_on_which_each_process_dies_fails(model: MiniLMModel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(minilm, "_TIMEOUT_SECONDS", 0.0)
    with pytest.raises(EmbeddingFailed):
        await model.embed_texts(["x"])
    monkeypatch.undo()
    assert await model.embed_texts(["x"])


async def test_memory_stays_below_500_mb(model: MiniLMModel) -> None:
    for length in (40, 10, 300, 1):
        await model.embed_texts(["some words of many " * length] * 8)
    (worker,) = model._workers.idle
    assert read_memory(worker.pid, "VmHWM") < 500


async def test_another_model_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "model/model.onnx").write_bytes(b"another model")
    monkeypatch.setattr(minilm, "_package_folder", lambda _: tmp_path / "model")
    with pytest.raises(EmbeddingUnavailable, match=r"^The embedding model is not available$"):
        await MiniLMModel(BwrapSandbox(tmp_path / "data")).embed_texts(["x"])


async def test_too_many_calls_are_told_to_wait(model: MiniLMModel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model._workers, "_max_waiting", 2)
    results = await asyncio.gather(*(model.embed_texts(["x"]) for _ in range(4)), return_exceptions=True)
    assert sum(isinstance(result, EmbeddingUnavailable) for result in results) == 2
