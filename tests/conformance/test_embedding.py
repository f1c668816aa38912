"""The contract of embedding models, over every implementation."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from roost.drivers.embedding.contract import CHUNK_CHARACTERS, EmbeddingModel, EmbeddingSettings
from roost.drivers.embedding.fake import FakeEmbeddingModel
from roost.drivers.embedding.minilm import MiniLMModel
from roost.drivers.embedding.openai import OpenAIEmbeddingModel
from tests.conformance.sandboxes import SANDBOXES
from tests.drivers.embedding.embedding_server import KEY, MODEL, EmbeddingServer, unpack
from tests.drivers.model.local import serving


@pytest.fixture(params=["fake", "openai", *SANDBOXES[:2]])
async def model(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[EmbeddingModel]:
    async with AsyncExitStack() as stack:
        match request.param:
            case "fake":
                made: EmbeddingModel = FakeEmbeddingModel()
            case "openai":
                url = await stack.enter_async_context(serving(EmbeddingServer()))
                made = OpenAIEmbeddingModel(EmbeddingSettings(f"{url}/v1", MODEL, KEY))
            case _:
                made = MiniLMModel(request.param(tmp_path))
        stack.push_async_callback(made.close)
        yield made


def similarity(one: bytes, other: bytes) -> float:
    return sum(first * second for first, second in zip(unpack(one), unpack(other), strict=True))


async def test_similar_texts_have_near_vectors(model: EmbeddingModel) -> None:
    meal, dinner, market = await model.embed_texts(
        ["the cat eats fish for dinner", "a cat that eats fish", "stock prices fell in spring"]
    )
    assert similarity(meal, dinner) > 0.5 > similarity(meal, market)


async def test_vectors_have_length_one_and_the_same_dimension(model: EmbeddingModel) -> None:
    vectors = await model.embed_texts(["one", "two words", "", " \n", "😀", "x" * 100_000, "lone \ud800", "nul \0"])
    assert len({len(vector) for vector in vectors}) == 1
    assert len(vectors[0]) % 4 == 0
    for vector in vectors:
        assert similarity(vector, vector) == pytest.approx(1, abs=1e-4)


async def test_any_number_of_texts_in_their_order(model: EmbeddingModel) -> None:
    assert list(await model.embed_texts([])) == []
    texts = [f"word{number} " * (1 + number % 7) for number in range(70)]
    vectors = await model.embed_texts(texts)
    assert len(vectors) == len(texts)
    for number in (0, 13, 69):
        (alone,) = await model.embed_texts([texts[number]])
        assert similarity(alone, vectors[number]) > 0.98
        assert similarity(alone, vectors[number]) == max(similarity(alone, vector) for vector in vectors)


async def test_the_end_of_a_chunk_counts(model: EmbeddingModel) -> None:
    words = "people walk along the river in spring and talk about it. "
    beginning = (words * 20)[: CHUNK_CHARACTERS - 60]
    plain, other = await model.embed_texts([beginning, beginning + " Volcanoes erupt lava; magma destroys cities."])
    assert similarity(plain, other) < 0.999


async def test_calls_at_the_same_time_do_not_mix(model: EmbeddingModel) -> None:
    texts = [["cats eat fish", f"number{number}"] for number in range(6)]
    found = await asyncio.gather(*(model.embed_texts(pair) for pair in texts))
    for pair, (cats, own) in zip(texts, found, strict=True):
        assert similarity(cats, found[0][0]) > 0.98
        assert similarity(own, (await model.embed_texts(pair[1:]))[0]) > 0.98


async def test_the_model_has_an_id(model: EmbeddingModel) -> None:
    assert model.model_id == model.model_id != ""


async def test_close_is_idempotent(model: EmbeddingModel) -> None:
    await model.close()
    assert len(await model.embed_texts(["again"])) == 1
    await model.close()
    await model.close()
