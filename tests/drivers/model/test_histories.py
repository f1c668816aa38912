"""A history that one provider's model made continues with each other one: generated ones against the target's rules."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roost.drivers.model.anthropic.driver import ChunkTranslator, chat_completion
from roost.drivers.model.anthropic.request import messages_request
from roost.drivers.model.chat import ChatRequest
from roost.drivers.model.contract import ModelSettings, UpstreamRefused
from roost.drivers.model.openai import OpenAIUpstream
from tests.drivers.model.local import OpenAIProvider, serving

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
IDS = {
    # how the providers of a history number their tool calls
    "openai": lambda turn, call: f"call_{turn}AbCdEfGhIjKlMnOpQrSt{call}",
    "gemini": lambda _turn, _call: "",
    "kimi": lambda _turn, call: f"functions.find:{call}",
    "mistral": lambda turn, call: f"Ab3{turn % 1000:03}{call:03}",
    "bedrock": lambda turn, call: f"tooluse_{'x' * 40}{turn}_{call}",
    "local": lambda _turn, call: f"chatcmpl-tool-{call}",
}
TEXTS = st.sampled_from(["", " \n", "\n", "\u2003", "words", "words \n", "<b>"])
PARTS = st.lists(
    st.sampled_from(
        [
            *({"type": "text", "text": text} for text in ("", "  \n", "words")),
            *(
                {"type": "image_url", "image_url": {"url": f"data:{kind};base64,{PIXEL}"}}
                for kind in ("image/png", "IMAGE/PNG", "image/jpg", "image/x-png", "application/octet-stream")
            ),
            {"type": "image_url", "image_url": {"url": "https://example.org/a.png", "detail": "low"}},
        ]
    ),
    max_size=3,
)


@st.composite
def histories(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Return messages in OpenAI's format as engines keep them, with answers of several providers."""
    messages: list[dict[str, Any]] = []
    if draw(st.booleans()):
        messages.append({"role": "system", "content": draw(TEXTS)})
    for turn in range(draw(st.integers(1, 4))):
        if draw(st.integers(0, 4)):
            messages.append({"role": "user", "content": draw(TEXTS | PARTS)})
        number = IDS[draw(st.sampled_from(sorted(IDS)))]
        answer: dict[str, Any] = {"role": "assistant", "content": draw(TEXTS | st.none())}
        if draw(st.booleans()):
            thought = {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}
            answer["content"] = [thought, {"type": "text", "text": draw(TEXTS)}]
        calls = [
            {
                "id": number(turn, call),
                "type": "function",
                "function": {"name": draw(st.sampled_from(["find", "a.b", "x" * 200])), "arguments": draw(ARGUMENTS)},
            }
            for call in range(draw(st.integers(0, 2)))
        ]
        if calls or draw(st.booleans()):
            answer["tool_calls"] = calls
        messages.append(answer)
        results = [
            {"role": "tool", "tool_call_id": call["id"], "content": draw(TEXTS | PARTS)}
            for call in calls
            if draw(st.integers(0, 5))  # some are lost where a history was cut
        ]
        messages += draw(st.permutations(results)) if number is IDS["openai"] else results
    messages.append(
        {"role": "user", "content": "go on"}
        if draw(st.booleans())
        else {"role": "user", "content": [*draw(PARTS), {"type": "text", "text": "go on"}]}
    )
    return messages


ARGUMENTS = st.sampled_from(["", "{}", '{"a": 1}', '{"a": ', "[1]"])


def list_faults(body: dict[str, Any]) -> Iterator[str]:
    """Yield what the Messages API's published reference forbids in a request."""
    turns, seen = body["messages"], set[str]()
    if not turns or turns[0]["role"] != "user":
        yield "the first turn is not the user's"
    for before, turn in zip([None, *turns], turns, strict=False):
        if before and before["role"] == turn["role"]:
            yield "two turns of one role"
        if not turn["content"]:
            yield "an empty turn"
        calls = [block["id"] for block in (before or {"content": []})["content"] if block["type"] == "tool_use"]
        results = [block["tool_use_id"] for block in turn["content"] if block["type"] == "tool_result"]
        if sorted(calls) != sorted(results):
            yield f"calls {calls} have the results {results}"
        if any(block["type"] == "tool_result" for block in turn["content"][len(results) :]):
            yield "results come first"
        for block in turn["content"]:
            yield from list_block_faults(block)
            if block["type"] == "tool_use":
                if block["id"] in seen:
                    yield f"{block['id']} occurs twice"
                seen.add(block["id"])
    if turns[-1]["content"][-1]["type"] == "tool_use":
        yield "a call at the end has no result"
    for block in body.get("system", []):
        yield from list_block_faults(block)


def list_block_faults(block: dict[str, Any]) -> Iterator[str]:
    match block["type"]:
        case "text":
            if not block["text"].strip():
                yield "text content blocks must contain non-whitespace text"
        case "image":
            source = block["source"]
            if source["type"] == "base64":
                if source["media_type"] not in {"image/jpeg", "image/png", "image/gif", "image/webp"}:
                    yield f"media type {source['media_type']}"
                if source["media_type"] != "image/png":
                    yield "the image is a PNG"
            elif not source["url"].startswith("https://"):
                yield "only HTTPS URLs are supported"
        case "tool_use":
            if not re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", block["id"]):
                yield f"id {block['id']!r}"
            if not re.fullmatch(r"[a-zA-Z0-9_-]{1,128}", block["name"]):
                yield f"name {block['name']!r}"
            if not isinstance(block["input"], dict):
                yield "input is no object"
        case "tool_result":
            for part in block.get("content", []) if isinstance(block.get("content"), list) else []:
                yield from list_block_faults(part)
        case kind:
            yield f"unknown type {kind}"


@settings(max_examples=400, deadline=None)
@given(histories())
def test_a_history_of_others_continues_with_anthropic(messages: list[dict[str, Any]]) -> None:
    body = messages_request(ChatRequest.model_validate({"model": "claude", "messages": messages}))
    assert not list(list_faults(body)), json.dumps(body["messages"], indent=1)
    words = sum(message["content"] == "words" for message in messages)
    assert json.dumps(body).count('"words"') >= words


@pytest.mark.parametrize("provider", ["openai", "mistral"])
@settings(max_examples=30, deadline=None)
@given(history=histories())
async def test_a_history_of_others_continues_with_openai(provider: str, history: list[dict[str, Any]]) -> None:
    form = re.compile(r"[A-Za-z0-9]{9}" if provider == "mistral" else r".{1,40}")
    asked = OpenAIProvider()
    async with serving(asked) as url:
        upstream = OpenAIUpstream(ModelSettings(provider, "openai", f"{url}/v1"))
        await upstream.complete(ChatRequest.model_validate({"model": "parrot", "messages": history}))
        await upstream.close()
    calls: list[str] = []
    for message in asked.bodies[0]["messages"]:
        assert message.get("tool_calls") != []
        parts = message["content"] if isinstance(message["content"], list) else []
        assert not any(part["type"] == "thinking" for part in parts)
        assert message["role"] != "assistant" or message["content"] or message["tool_calls"]
        if message.get("tool_calls"):
            calls = [call["id"] for call in message["tool_calls"]]
            assert all(form.fullmatch(call) for call in calls)
        if message["role"] == "tool":
            assert message["tool_call_id"] in calls


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"stop": "\n"}, "stop"),
        ({"top_p": 1.5}, "top_p"),
        ({"tools": [{"type": "function", "function": {"name": "a.b"}}]}, "tools[0].function.name"),
        (
            {"tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "array"}}}]},
            "tools[0].function.parameters.type",
        ),
        (
            {"tools": [{"type": "function", "function": {"name": "f", "parameters": {"properties": {"a b": {}}}}}]},
            "tools[0].function.parameters.properties",
        ),
        (
            {"tools": [{"type": "function", "function": {"name": "f", "description": text}} for text in "ab"]},
            "tools[1].function.name",
        ),
        (
            {
                "tools": [{"type": "function", "function": {"name": "f"}}],
                "tool_choice": {"type": "function", "function": {"name": "g"}},
            },
            "tool_choice.function.name",
        ),
        ({"messages": [{"role": "user", "content": " \n"}]}, "messages"),
        ({"messages": [{"role": "user", "content": [{"type": "input_audio"}]}]}, "messages[0].content[0]"),
        *(
            (
                {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}]}]},
                "messages[0].content[0].image_url.url",
            )
            for url in (
                "data:image/svg+xml;base64,PHN2Zz4=",
                "data:image/png;base64,",
                "data:image/png;base64,%%%",
                "data:image/png;base64,iVBORw0KGgoaa",
                "data:image/png,raw",
                "http://example.org/a.png",
            )
        ),
    ],
)
def test_untranslatable_fields_are_refused_by_name(changes: dict[str, Any], field: str) -> None:
    request = {"model": "claude", "messages": [{"role": "user", "content": "x"}], **changes}
    with pytest.raises(UpstreamRefused) as refused:
        messages_request(ChatRequest.model_validate(request))
    assert refused.value.message.startswith(f"{field}: ")


def test_alternatives_at_the_top_of_a_schema_become_one_object() -> None:
    a, b = ({"properties": {name: {"type": "string"}, "both": {}}, "required": [name, "both"]} for name in "ab")
    tool = {"type": "function", "function": {"name": "f", "parameters": {"anyOf": [a, b]}}}
    request = {"model": "claude", "messages": [{"role": "user", "content": "x"}], "tools": [tool]}
    body = messages_request(ChatRequest.model_validate(request))
    assert body["tools"][0]["input_schema"] == {
        "type": "object",
        "properties": {"a": {"type": "string"}, "both": {}, "b": {"type": "string"}},
        "required": ["both"],
    }


def _translate(*messages: dict[str, Any], **more: Any) -> dict[str, Any]:
    request = {"model": "claude", "messages": [{"role": "user", "content": "x"}, *messages], **more}
    return messages_request(ChatRequest.model_validate(request))


def _calling(arguments: str, identity: str = "a") -> dict[str, Any]:
    call = {"id": identity, "type": "function", "function": {"name": "f", "arguments": arguments}}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


def test_alternatives_that_are_references_keep_their_fields() -> None:
    a = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
    parameters = {"anyOf": [{"$ref": "#/$defs/A"}], "$defs": {"A": a}, "required": None, "type": None}
    found = _translate(tools=[{"type": "function", "function": {"name": "f", "parameters": parameters}}])
    assert found["tools"][0]["input_schema"] == {**a, "$defs": {"A": a}}


@pytest.mark.parametrize("value", ["NaN", "-Infinity", "1e999", '"\\ud83d"', '{"\\udc00": 1}'])
def test_arguments_that_no_request_can_carry_stay_as_their_text(value: str) -> None:
    """A model wrote them: NaN is no JSON, and half a character no UTF-8."""
    arguments = f'{{"a": {value}}}'
    body = _translate(_calling(arguments))
    assert body["messages"][1]["content"][0]["input"] == {"arguments": arguments}
    json.dumps(body, allow_nan=False, ensure_ascii=False).encode()


@pytest.mark.parametrize(
    "message",
    [
        {"role": "assistant", "content": None, "refusal": "I will not."},
        {"role": "assistant", "content": [{"type": "refusal", "refusal": "I will not."}]},
    ],
)
def test_a_refusal_is_what_the_assistant_said(message: dict[str, Any]) -> None:
    turns = _translate(message, {"role": "user", "content": "why?"})["messages"]
    assert [turn["role"] for turn in turns] == ["user", "assistant", "user"]
    assert turns[1]["content"] == [{"type": "text", "text": "I will not."}]


def test_a_field_is_named_by_its_place_in_the_request() -> None:
    with pytest.raises(UpstreamRefused, match=r"^messages\[2\]\.content\[0\]: "):
        _translate({"role": "assistant", "content": ""}, {"role": "user", "content": [{"type": "input_audio"}]})


def test_marks_for_the_cache_count_in_results_and_shorten() -> None:
    """At most four anywhere, also within results of tools; none for an hour after one for five minutes."""

    def marked(**more: str) -> list[dict[str, Any]]:
        return [{"type": "text", "text": "x", "cache_control": {"type": "ephemeral", **more}}]

    results = [
        (_calling("{}", f"a{n}"), {"role": "tool", "tool_call_id": f"a{n}", "content": marked()}) for n in range(3)
    ]
    last = {"role": "user", "content": marked(ttl="1h")}
    body = _translate({"role": "system", "content": marked(ttl="1h")}, *(one for pair in results for one in pair), last)
    assert json.dumps(body).count("cache_control") == 4
    assert json.dumps(body).count("1h") == 0
    before = _translate({"role": "system", "content": marked(ttl="1h")}, {"role": "user", "content": marked()})
    assert before["system"] == marked(ttl="1h")


@pytest.mark.parametrize("provider", ["mistral", "groq"])
async def test_fields_of_others_answers_do_not_reach_a_strict_provider(provider: str) -> None:
    """`reasoning_content` of DeepSeek, `annotations` of OpenAI, `extra_content` of Gemini: 422 and 400 there."""
    answer = {
        **_calling("{}", "abcdefghi"),
        "reasoning_content": "hm",
        "refusal": None,
        "annotations": [],
        "audio": None,
    }
    answer["tool_calls"][0] |= {"index": 0, "extra_content": {"google": {"thought_signature": "x"}}}
    result = {"role": "tool", "tool_call_id": "abcdefghi", "content": "y"}
    thought = {"role": "assistant", "content": None, "reasoning": "hm"}
    messages = [{"role": "user", "content": "x"}, answer, result, thought, {"role": "user", "content": "z"}]
    asked = OpenAIProvider()
    async with serving(asked) as url:
        upstream = OpenAIUpstream(ModelSettings(provider, "openai", f"{url}/v1"))
        await upstream.complete(ChatRequest.model_validate({"model": "parrot", "messages": messages}))
        await upstream.close()
    expected = [messages[0], _calling("{}", "abcdefghi"), result, messages[4]]
    assert asked.bodies[0]["messages"] == expected


def test_the_last_marks_for_the_cache_stay() -> None:
    marks = [
        {"type": "ephemeral"},
        {"type": "ephemeral", "ttl": "1h"},
        {"type": "ephemeral", "ttl": "2h"},
        {"type": "x"},
    ]
    parts = [{"type": "text", "text": str(n), "cache_control": marks[n % 4]} for n in range(8)]
    request = ChatRequest.model_validate({"model": "claude", "messages": [{"role": "user", "content": parts}]})
    content = messages_request(request)["messages"][0]["content"]
    assert [block.get("cache_control") for block in content] == [
        *(None, None, {"type": "ephemeral"}, None),
        *({"type": "ephemeral"}, {"type": "ephemeral"}, {"type": "ephemeral"}, None),
    ]


BLOCKS = st.lists(
    st.one_of(
        st.builds(lambda text: {"type": "text", "text": text}, st.sampled_from(["", " ", "Hello ", "world"])),
        st.builds(
            lambda value, number: {"type": "tool_use", "id": f"toolu_{number}", "name": "f", "input": value},
            st.sampled_from([{}, {"city": "Graz"}]),
            st.integers(0, 9),
        ),
        st.just({"type": "thinking", "thinking": "hm", "signature": "x"}),
        st.just({"type": "redacted_thinking", "data": "x"}),
        st.just({"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}),
    ),
    max_size=4,
)


@settings(max_examples=200, deadline=None)
@given(BLOCKS, st.data())
def test_a_stream_says_what_the_whole_answer_says(blocks: list[dict[str, Any]], data: st.DataObject) -> None:
    """Text and arguments count wherever the schema allows them: in the start of a block, in deltas, in both."""
    events: list[dict[str, Any]] = [{"type": "message_start", "message": {"id": "m", "model": "c", "content": []}}]
    for index, block in enumerate(blocks):
        begun, deltas = dict(block), list[dict[str, Any]]()
        if block["type"] == "text":
            cut = data.draw(st.integers(0, len(block["text"])))
            begun["text"] = block["text"][:cut]
            deltas = [{"type": "text_delta", "text": letter} for letter in block["text"][cut:]]
        elif block["type"] == "tool_use" and data.draw(st.booleans()):
            begun["input"] = {}
            deltas = [{"type": "input_json_delta", "partial_json": part} for part in ("", json.dumps(block["input"]))]
        events.append({"type": "content_block_start", "index": index, "content_block": begun})
        events += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
        events.append({"type": "content_block_stop", "index": index})
    usage = {"output_tokens": 3, "input_tokens": None}
    reason = data.draw(st.sampled_from(["end_turn", "tool_use", "max_tokens", None]))  # null: the schema allows it
    events.append({"type": "message_delta", "delta": {"stop_reason": reason}, "usage": usage})
    events += [{"type": "ping"}, {"type": "of_tomorrow", "index": 7}, {"type": "message_stop"}]
    translator = ChunkTranslator(with_usage=False)
    chunks = [chunk for event in events for chunk in translator.translate(event)]
    deltas = [choice["delta"] for chunk in chunks for choice in chunk["choices"]]
    calls: dict[int, dict[str, str]] = {}
    for call in (call for delta in deltas for call in delta.get("tool_calls", [])):
        known = calls.setdefault(call["index"], {"id": call.get("id", ""), "arguments": ""})
        known["arguments"] += call["function"].get("arguments", "")
    choice = chat_completion({"type": "message", "content": blocks, "stop_reason": reason})["choices"][0]
    finished = [choice["finish_reason"] for chunk in chunks for choice in chunk["choices"] if choice["finish_reason"]]
    assert finished == [choice["finish_reason"]]
    whole = choice["message"]
    assert "".join(delta.get("content", "") for delta in deltas) == (whole["content"] or "")
    assert [(call["id"], json.loads(call["arguments"])) for call in calls.values()] == [
        (call["id"], json.loads(call["function"]["arguments"])) for call in whole.get("tool_calls", [])
    ]
    assert translator.complete
