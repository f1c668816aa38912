"""OpenAI-compatible endpoints that are slow, wrong or hostile."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from starlette.responses import JSONResponse, Response

from roost.core.sensitive import Sensitive
from roost.drivers.embedding import openai
from roost.drivers.embedding.contract import EmbeddingFailed, EmbeddingSettings, EmbeddingUnavailable
from roost.drivers.embedding.openai import OpenAIEmbeddingModel
from tests.drivers.embedding.embedding_server import KEY, MODEL, EmbeddingServer, unpack, vectors_response
from tests.drivers.model.local import raw, serving


@pytest.fixture
def server() -> EmbeddingServer:
    return EmbeddingServer()


@pytest.fixture
async def model(server: EmbeddingServer, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[OpenAIEmbeddingModel]:
    monkeypatch.setattr(openai, "_PAUSES", (0.01, 0.01, 0.01))
    monkeypatch.setattr(openai, "_MAX_PAUSE_SECONDS", 0.05)
    async with serving(server) as url:
        made = OpenAIEmbeddingModel(EmbeddingSettings(f"{url}/v1", MODEL, KEY))
        yield made
        await made.close()


async def test_texts_are_sent_in_batches(model: OpenAIEmbeddingModel, server: EmbeddingServer) -> None:
    await model.embed_texts([f"text {number}" for number in range(70)])
    assert [len(request["input"]) for request in server.requests] == [32, 32, 6]
    assert server.requests[0] | {"input": []} == {"model": MODEL, "input": [], "encoding_format": "float"}


async def test_vectors_come_in_the_order_of_their_index(model: OpenAIEmbeddingModel, server: EmbeddingServer) -> None:
    server.answers = [vectors_response([[3, 4], [0, -2.0], [1e200, 0]])]
    assert [unpack(vector) for vector in await model.embed_texts(["a", "b", "c"])] == [
        pytest.approx([0.6, 0.8]),
        [0, -1],
        [1, 0],
    ]
    server.answers = [JSONResponse({"data": [{"embedding": [1, 0]}, {"embedding": [0, 1]}]})]  # some omit the index
    assert [unpack(vector) for vector in await model.embed_texts(["a", "b"])] == [[1, 0], [0, 1]]


@pytest.mark.parametrize("status", [429, 408, 500, 502, 503])
async def test_temporary_failures_are_tried_again(
    model: OpenAIEmbeddingModel, server: EmbeddingServer, status: int
) -> None:
    server.answers = [Response(status_code=status, headers={"Retry-After": "999999"}) for _ in range(3)]
    assert len(await model.embed_texts(["x"])) == 1
    assert len(server.requests) == 4
    server.answers = [Response(status_code=status) for _ in range(4)]
    with pytest.raises(EmbeddingUnavailable) as unavailable:
        await model.embed_texts(["x"])
    assert unavailable.value.retry_after
    assert len(server.requests) == 8


@pytest.mark.parametrize(
    ("status", "error"),
    [
        *((status, EmbeddingFailed) for status in (400, 404, 413, 307)),
        *((status, EmbeddingUnavailable) for status in (401, 403)),
    ],
)
async def test_refusals_are_final_and_show_no_key(
    model: OpenAIEmbeddingModel,
    server: EmbeddingServer,
    capsys: pytest.CaptureFixture[str],
    status: int,
    error: type[Exception],
) -> None:
    message = f"no, not with {KEY.reveal()}" + "x" * 100_000
    server.answers = [Response(message, status, headers={"Location": "http://127.0.0.1:1/v1/embeddings"})]
    with pytest.raises(error) as refused:
        await model.embed_texts(["x"])
    assert len(server.requests) == 1
    assert KEY.reveal() not in str(refused.value) + (shown := "".join(capsys.readouterr()))
    assert "no, not with" not in str(refused.value)
    assert len(shown) < 2000


async def test_a_wrong_key_is_named_as_the_reason(server: EmbeddingServer) -> None:
    async with serving(server) as url:
        model = OpenAIEmbeddingModel(EmbeddingSettings(f"{url}/v1", MODEL, Sensitive("wrong")))
        with pytest.raises(EmbeddingUnavailable, match="does not accept the configured key"):
            await model.embed_texts(["x"])
        await model.close()


def answer(vectors: Any) -> str:
    return json.dumps({"data": vectors})


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("no json", "0 vectors for 2 texts"),
        ("[]", "0 vectors for 2 texts"),
        (answer([{"embedding": [1, 0]}]), "1 vectors for 2 texts"),
        (answer([{"embedding": [1, 0]}] * 3), "3 vectors for 2 texts"),
        (answer([{"index": 1, "embedding": [1, 0]}] * 2), "2 vectors for 2 texts"),
        (answer([{"index": 0, "embedding": [1, 0]}, {"index": 7, "embedding": [1, 0]}]), "2 vectors for 2 texts"),
        (answer([{"embedding": [1, 0]}, {"embedding": [1, 0, 0]}]), "different dimensions"),
        (answer([{"embedding": []}, {"embedding": []}]), "list of 1 to 8,192 numbers"),
        (answer([{"embedding": [1] * 8193}] * 2), "list of 1 to 8,192 numbers"),
        (answer([{"embedding": [True, "1"]}] * 2), "list of 1 to 8,192 numbers"),
        (answer([{"embedding": "AACAPw=="}] * 2), "list of 1 to 8,192 numbers"),
        (answer([{"embedding": [0, 0.0]}] * 2), "no finite length"),
        ('{"data": [{"embedding": [NaN, 1]}, {"embedding": [1, 1]}]}', "no finite length"),
        ('{"data": [{"embedding": [1e999, 1]}, {"embedding": [1, 1]}]}', "no finite length"),
        (answer([{"embedding": [10**400, 1]}] * 2), "no finite length"),
        (" " * (33 * 1024**2), "more than 33,554,432 bytes"),
    ],
)
async def test_malformed_answers_fail(
    model: OpenAIEmbeddingModel, server: EmbeddingServer, body: str, reason: str
) -> None:
    server.answers = [Response(body, media_type="application/json")]
    with pytest.raises(EmbeddingFailed, match=reason):
        await model.embed_texts(["a", "b"])


async def test_a_model_that_changes_its_dimension_fails(model: OpenAIEmbeddingModel, server: EmbeddingServer) -> None:
    await model.embed_texts(["x"])
    server.answers = [vectors_response([[1.0, 0.0]])]
    with pytest.raises(EmbeddingFailed, match="different dimensions"):
        await model.embed_texts(["x"])


async def test_an_endpoint_that_is_silent_or_absent_is_unavailable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openai, "_PAUSES", (0.01,))
    monkeypatch.setattr(openai, "_TOTAL_SECONDS", 0.2)
    async with raw(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n{", hold=True) as url:
        model = OpenAIEmbeddingModel(EmbeddingSettings(url, MODEL))
        with pytest.raises(EmbeddingUnavailable):
            await model.embed_texts(["x"])
        await model.close()
    with pytest.raises(EmbeddingUnavailable):
        await model.embed_texts(["nothing listens any more"])
    await model.close()
