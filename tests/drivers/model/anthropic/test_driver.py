import json
from typing import Any

import pytest

from roost.drivers.model.anthropic.driver import AnthropicUpstream, ChunkTranslator, chat_completion
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


def _message(*content: Any, **more: Any) -> dict[str, Any]:
    return {"id": "msg_1", "type": "message", "model": "claude", "content": list(content), **more}


def _chunks(*events: dict[str, Any], with_usage: bool = False) -> tuple[ChunkTranslator, list[dict[str, Any]]]:
    made = ChunkTranslator(with_usage=with_usage)
    return made, [chunk for event in events for chunk in made.translate(event)]


def _deltas(*events: dict[str, Any]) -> list[dict[str, Any]]:
    return [chunk["choices"][0]["delta"] for chunk in _chunks(*events)[1]]


def _start(index: int, block: dict[str, Any]) -> dict[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": block}


def _delta(index: int, **delta: Any) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": delta}


def _stop(index: int) -> dict[str, Any]:
    return {"type": "content_block_stop", "index": index}


def test_a_message_is_a_completion() -> None:
    answer = chat_completion(
        _message(
            {"type": "thinking", "thinking": "hm", "signature": "x"},
            {"type": "text", "text": "Let me "},
            {"type": "text", "text": "look."},
            {"type": "tool_use", "id": "t1", "name": "f", "input": {"a": "ü"}},
            {"type": "tool_use", "id": "t2", "name": "g", "input": {}},
            stop_reason="tool_use",
            usage={"input_tokens": 3, "output_tokens": 5},
        )
    )
    assert (answer["id"], answer["model"], answer["object"]) == ("msg_1", "claude", "chat.completion")
    (choice,) = answer["choices"]
    assert choice["finish_reason"] == "tool_calls"
    assert choice["message"] == {
        "role": "assistant",
        "content": "Let me look.",
        "tool_calls": [
            {"id": "t1", "type": "function", "function": {"name": "f", "arguments": '{"a": "\\u00fc"}'}},
            {"id": "t2", "type": "function", "function": {"name": "g", "arguments": "{}"}},
        ],
    }


def test_cached_tokens_are_part_of_the_prompt() -> None:
    usage = {
        "input_tokens": 3,
        "cache_creation_input_tokens": 10,
        "cache_read_input_tokens": 100,
        "output_tokens": 7,
    }
    assert chat_completion(_message(usage=usage))["usage"] == {
        "prompt_tokens": 113,
        "completion_tokens": 7,
        "total_tokens": 120,
        "prompt_tokens_details": {"cached_tokens": 100},
    }


@pytest.mark.parametrize(
    ("reason", "finish"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("pause_turn", "stop"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("tool_use", "tool_calls"),
        ("refusal", "content_filter"),
        ("something_new", "stop"),
        (None, "stop"),
        (["odd"], "stop"),
    ],
)
def test_reasons_to_stop(reason: Any, finish: str) -> None:
    assert chat_completion(_message(stop_reason=reason))["choices"][0]["finish_reason"] == finish


@pytest.mark.parametrize(
    "odd", [{}, {"content": "text"}, {"content": [1, None, {"type": "tool_use"}]}, {"usage": {"input_tokens": -4}}]
)
def test_an_odd_message_is_still_a_completion(odd: dict[str, Any]) -> None:
    answer = chat_completion(odd)
    assert answer["choices"][0]["message"]["role"] == "assistant"
    assert answer["usage"]["total_tokens"] == 0


def test_a_stream_of_text() -> None:
    made, chunks = _chunks(
        {"type": "message_start", "message": _message(usage={"input_tokens": 9, "output_tokens": 1})},
        _start(0, {"type": "text", "text": ""}),
        {"type": "ping"},
        _delta(0, type="text_delta", text="Hel"),
        _delta(0, type="text_delta", text="lo"),
        _stop(0),
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 4}},
        {"type": "message_stop"},
        with_usage=True,
    )
    assert made.complete
    assert {(chunk["id"], chunk["model"], chunk["object"]) for chunk in chunks} == {
        ("msg_1", "claude", "chat.completion.chunk")
    }
    assert [chunk["choices"][0]["delta"] for chunk in chunks[:-1]] == [
        {"role": "assistant", "content": ""},
        {"content": "Hel"},
        {"content": "lo"},
        {},
    ]
    assert [chunk["choices"][0]["finish_reason"] for chunk in chunks[:-1]] == [None, None, None, "stop"]
    assert chunks[-1]["choices"] == []
    assert (chunks[-1]["usage"]["prompt_tokens"], chunks[-1]["usage"]["completion_tokens"]) == (9, 4)


def test_calls_are_numbered_without_what_stands_between() -> None:
    deltas = _deltas(
        _start(0, {"type": "thinking", "thinking": ""}),
        _delta(0, type="thinking_delta", thinking="hm"),
        _delta(0, type="signature_delta", signature="x"),
        _start(1, {"type": "text", "text": ""}),
        _delta(1, type="text_delta", text="So:"),
        _start(2, {"type": "tool_use", "id": "t1", "name": "f", "input": {}}),
        _delta(2, type="input_json_delta", partial_json=""),
        _delta(2, type="input_json_delta", partial_json='{"a":'),
        _delta(2, type="input_json_delta", partial_json="1}"),
        _stop(2),
        _start(3, {"type": "tool_use", "id": "t2", "name": "g", "input": {}}),
        _delta(3, type="input_json_delta", partial_json=""),
        _stop(3),
    )
    assert deltas == [
        {"content": "So:"},
        {"tool_calls": [{"index": 0, "id": "t1", "type": "function", "function": {"name": "f", "arguments": ""}}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": '{"a":'}}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": "1}"}}]},
        {"tool_calls": [{"index": 1, "id": "t2", "type": "function", "function": {"name": "g", "arguments": ""}}]},
        {"tool_calls": [{"index": 1, "function": {"arguments": "{}"}}]},
    ]


@pytest.mark.parametrize(
    "event",
    [
        {},
        {"type": ["x"]},
        {"type": "content_block_start", "content_block": "text"},
        {"type": "content_block_delta", "index": [1], "delta": {"partial_json": "{"}},
        {"type": "content_block_delta", "index": 0, "delta": None},
        {"type": "message_delta", "delta": {}, "usage": None},
        {"type": "content_block_stop"},
        {"type": "something_new"},
    ],
)
def test_odd_events_give_nothing(event: dict[str, Any]) -> None:
    made, chunks = _chunks(event)
    assert chunks == []
    assert not made.complete
