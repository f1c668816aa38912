import json
from dataclasses import replace

import pytest

from roost.drivers.model.chat import ChatRequest
from roost.drivers.model.contract import ModelSettings, UpstreamUnavailable
from roost.drivers.model.openai import OpenAIUpstream
from tests.drivers.model.local import KEY, MODEL, OpenAIProvider, raw, serving


def _settings(url: str, *models: str) -> ModelSettings:
    return ModelSettings("far", "openai", f"{url}/v1", KEY, models)


async def test_named_models_are_not_asked_for() -> None:
    upstream = OpenAIUpstream(_settings("http://127.0.0.1:9", "b", "a"))
    assert list(await upstream.list_models()) == ["b", "a"]
    await upstream.close()


async def test_both_directions_go_through_as_they_are() -> None:
    provider = OpenAIProvider()
    sent = {
        "model": MODEL,
        "messages": [{"role": "user", "content": "hello", "x": 1}],
        "response_format": {"type": "json_object"},
    }
    async with serving(provider) as url:
        upstream = OpenAIUpstream(_settings(url))
        answer = await upstream.complete(ChatRequest.model_validate(sent))
        assert provider.bodies == [sent]
        assert answer["x_extra"] == "kept"
        request = ChatRequest.model_validate({**sent, "stream": True})
        chunks = [chunk async for chunk in upstream.stream(request)]
        assert provider.bodies[1] == {**sent, "stream": True}
        assert chunks[0]["choices"][0]["delta"] == {"role": "assistant", "content": ""}
        await upstream.close()


@pytest.mark.parametrize(
    ("body", "models"),
    [
        ({"data": [{"id": "a"}, {"id": 7}, "b", {}, {"id": ""}, {"id": "x" * 201}, {"id": "c"}]}, ["a", "c"]),
        ({"data": "none"}, []),
        ({"object": "list"}, []),
    ],
)
async def test_only_ids_are_taken_from_a_list(body: object, models: list[str]) -> None:
    text = json.dumps(body)
    async with raw(f"HTTP/1.1 200 OK\r\nContent-Length: {len(text)}\r\n\r\n{text}".encode()) as url:
        upstream = OpenAIUpstream(_settings(url))
        assert await upstream.list_models() == models
        await upstream.close()


async def test_a_list_that_is_no_object_is_unavailable() -> None:
    async with raw(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]") as url:
        upstream = OpenAIUpstream(_settings(url))
        with pytest.raises(UpstreamUnavailable):
            await upstream.list_models()
        await upstream.close()


async def test_preferred_models_come_first_in_the_order_of_preference() -> None:
    text = json.dumps({"data": [{"id": model} for model in ("tts-1", "gpt-4o-mini", "gpt-5", "gpt-4o")]})
    async with raw(f"HTTP/1.1 200 OK\r\nContent-Length: {len(text)}\r\n\r\n{text}".encode()) as url:
        upstream = OpenAIUpstream(replace(_settings(url), prefer=("gpt-[0-9]", "gpt-*")))
        assert await upstream.list_models() == ["gpt-5", "gpt-4o-mini", "gpt-4o", "tts-1"]
        await upstream.close()
