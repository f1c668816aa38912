import json
from typing import Any

import pytest

from roost.drivers.model.anthropic import AnthropicUpstream
from roost.drivers.model.chat import ChatRequest
from roost.drivers.model.contract import ModelSettings, UpstreamDenied, UpstreamRefused, UpstreamUnavailable
from tests.drivers.model.local import KEY, MODEL, AnthropicProvider, raw, serving, sse, until

START = json.dumps({"type": "message_start", "message": {"id": "m", "model": MODEL}})
DELTA = json.dumps({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "a"}})
STOP = json.dumps({"type": "message_stop"})


def _upstream(url: str, *models: str, key: Any = KEY) -> AnthropicUpstream:
    return AnthropicUpstream(ModelSettings("claude", "anthropic", url, key, models))


def _request(content: Any = "hello", **more: Any) -> ChatRequest:
    return ChatRequest.model_validate({"model": MODEL, "messages": [{"role": "user", "content": content}], **more})


async def test_named_models_are_not_asked_for() -> None:
    upstream = _upstream("http://127.0.0.1:9", "b", "a")
    assert list(await upstream.list_models()) == ["b", "a"]
    await upstream.close()


async def test_it_speaks_the_messages_api() -> None:
    provider = AnthropicProvider()
    async with serving(provider) as url:
        upstream = _upstream(url)
        await upstream.complete(_request())
        assert provider.headers["x-api-key"] == KEY.reveal()
        assert provider.headers["anthropic-version"] == "2023-06-01"
        assert "authorization" not in provider.headers
        assert "stream" not in provider.bodies[0]
        assert [chunk async for chunk in upstream.stream(_request(stream=True))]
        assert provider.bodies[1]["stream"] is True
        await upstream.close()


async def test_a_wrong_key_is_for_the_operator_to_mend() -> None:
    async with serving(AnthropicProvider()) as url:
        upstream = _upstream(url, key=None)
        with pytest.raises(UpstreamDenied):
            await upstream.complete(_request())
        await upstream.close()


async def test_content_that_cannot_be_said_is_refused_before_anything_is_sent() -> None:
    provider = AnthropicProvider()
    async with serving(provider) as url:
        upstream = _upstream(url)
        request = _request([{"type": "input_audio", "input_audio": {}}])
        with pytest.raises(UpstreamRefused):
            await upstream.complete(request)
        with pytest.raises(UpstreamRefused):
            await anext(upstream.stream(request))
        assert provider.bodies == []
        await upstream.close()


async def test_an_answer_that_is_no_message_is_unavailable() -> None:
    async with raw(b'HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\n{"type":"x"}') as url:
        upstream = _upstream(url)
        with pytest.raises(UpstreamUnavailable):
            await upstream.complete(_request())
        await upstream.close()


@pytest.mark.parametrize(
    "rest",
    [[], [json.dumps({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}})]],
    ids=["cut", "error"],
)
async def test_a_stream_that_breaks_says_so(rest: list[str]) -> None:
    async with raw(sse(START, DELTA, *rest)) as url:
        upstream = _upstream(url)
        stream = upstream.stream(_request())
        await anext(stream)
        await anext(stream)
        with pytest.raises(UpstreamUnavailable):
            await anext(stream)
        await upstream.close()


async def test_after_the_end_nothing_is_waited_for() -> None:
    async with raw(sse(START, DELTA, STOP), hold=True) as url:
        upstream = _upstream(url)
        chunks = [chunk async for chunk in upstream.stream(_request())]
        assert [chunk["choices"][0]["finish_reason"] for chunk in chunks] == [None, None, "stop"]
        await upstream.close()


async def test_closed_stream_ends_at_the_provider() -> None:
    provider = AnthropicProvider()
    async with serving(provider) as url:
        upstream = _upstream(url)
        stream = upstream.stream(_request("/hang"))
        await anext(stream)
        await until(lambda: provider.hanging == 1)
        await stream.aclose()
        await until(lambda: provider.left == 1)
        await upstream.close()


async def test_a_token_goes_as_one_and_not_as_a_key() -> None:
    provider = AnthropicProvider()
    async with serving(provider) as url:
        upstream = AnthropicUpstream(ModelSettings("claude", "anthropic", url, KEY, bearer=True))
        with pytest.raises(UpstreamDenied):  # the stand-in takes keys alone
            await upstream.complete(_request())
        assert provider.headers["authorization"] == f"Bearer {KEY.reveal()}"
        assert "x-api-key" not in provider.headers
        await upstream.close()
