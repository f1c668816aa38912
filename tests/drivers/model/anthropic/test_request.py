from typing import Any

import pytest

from roost.drivers.model.anthropic.request import MAX_TOKENS, messages_request
from roost.drivers.model.chat import ChatRequest
from roost.drivers.model.contract import UpstreamRefused

PIXEL = "iVBORw0KGgo="


def _translated(*messages: dict[str, Any], **more: Any) -> dict[str, Any]:
    listed = list(messages) or [{"role": "user", "content": "hello"}]
    return messages_request(ChatRequest.model_validate({"model": "claude", "messages": listed, **more}))


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _tool_call(identity: str, arguments: str) -> dict[str, Any]:
    return {"id": identity, "type": "function", "function": {"name": "f", "arguments": arguments}}


def test_the_least_request() -> None:
    assert _translated() == {
        "model": "claude",
        "max_tokens": MAX_TOKENS,
        "messages": [{"role": "user", "content": [_text("hello")]}],
    }


def test_system_and_developer_speak_as_system() -> None:
    body = _translated(
        {"role": "system", "content": "one"},
        {"role": "user", "content": "hello"},
        {"role": "developer", "content": [_text("two")]},
    )
    assert body["system"] == [_text("one"), _text("two")]
    assert body["messages"] == [{"role": "user", "content": [_text("hello")]}]


def test_neighbours_of_one_role_become_one_turn() -> None:
    body = _translated(
        {"role": "user", "content": "a"},
        {"role": "user", "content": [_text("b"), _text("")]},
        {"role": "assistant", "content": ""},
        {"role": "assistant", "content": None},
        {"role": "user", "content": "c"},
        {"role": "assistant", "content": "d"},
    )
    assert body["messages"] == [
        {"role": "user", "content": [_text("a"), _text("b"), _text("c")]},
        {"role": "assistant", "content": [_text("d")]},
    ]


def test_a_turn_of_tools() -> None:
    body = _translated(
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": "I will", "tool_calls": [_tool_call("1", '{"a": 1}'), _tool_call("2", "")]},
        {"role": "tool", "tool_call_id": "1", "content": "one"},
        {"role": "tool", "tool_call_id": "2", "content": ""},
        {"role": "user", "content": "and?"},
    )
    assert body["messages"][1]["content"] == [
        _text("I will"),
        {"type": "tool_use", "id": "1", "name": "f", "input": {"a": 1}},
        {"type": "tool_use", "id": "2", "name": "f", "input": {}},
    ]
    assert body["messages"][2] == {
        "role": "user",
        "content": [
            {"type": "tool_result", "tool_use_id": "1", "content": [_text("one")]},
            {"type": "tool_result", "tool_use_id": "2"},
            _text("and?"),
        ],
    }


@pytest.mark.parametrize("arguments", ['{"a": ', "[1]", "7"])
def test_broken_arguments_of_the_past_are_kept(arguments: str) -> None:
    body = _translated(
        {"role": "user", "content": "go"}, {"role": "assistant", "tool_calls": [_tool_call("1", arguments)]}
    )
    assert body["messages"][1]["content"][0]["input"] == {"arguments": arguments}


def test_images_by_content_and_by_address() -> None:
    parts = [
        {"type": "image_url", "image_url": {"url": f"data:image/PNG;base64,{PIXEL}", "detail": "low"}},
        {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}},
    ]
    assert _translated({"role": "user", "content": parts})["messages"][0]["content"] == [
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}},
        {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}},
    ]


@pytest.mark.parametrize(
    "part",
    [
        {"type": "input_audio", "input_audio": {"data": "", "format": "wav"}},
        {"type": "file", "file": {"file_id": "1"}},
        {"type": "image_url", "image_url": {"url": "file:///etc/passwd"}},
        {"type": "image_url", "image_url": {"url": "data:text/html;base64,AA=="}},
        {"type": "image_url"},
    ],
)
def test_content_that_would_be_lost_is_refused(part: dict[str, Any]) -> None:
    with pytest.raises(UpstreamRefused):
        _translated({"role": "user", "content": [_text("look"), part]})


def test_marks_for_the_providers_cache_stay() -> None:
    marked = {**_text("long"), "cache_control": {"type": "ephemeral"}}
    assert _translated({"role": "system", "content": [marked]}, {"role": "user", "content": "x"})["system"] == [marked]


def test_tools_have_a_schema_each() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    tools = [
        {"type": "function", "function": {"name": "f", "description": "does f", "parameters": schema, "strict": True}},
        {"type": "function", "function": {"name": "g"}},
        {"type": "custom", "custom": {"name": "h"}},
    ]
    assert _translated(tools=tools)["tools"] == [
        {"name": "f", "description": "does f", "input_schema": schema},
        {"name": "g", "input_schema": {"type": "object", "properties": {}}},
    ]


@pytest.mark.parametrize(
    ("given", "choice"),
    [
        ({}, None),
        ({"tool_choice": "auto"}, None),
        ({"tool_choice": "none"}, {"type": "none"}),
        ({"tool_choice": "required"}, {"type": "any"}),
        ({"tool_choice": {"type": "function", "function": {"name": "f"}}}, {"type": "tool", "name": "f"}),
        ({"tool_choice": {"type": "function", "function": "f"}}, None),
        ({"parallel_tool_calls": True}, None),
        ({"parallel_tool_calls": False}, {"type": "auto", "disable_parallel_tool_use": True}),
        ({"parallel_tool_calls": False, "tool_choice": "none"}, {"type": "none"}),
        (
            {"parallel_tool_calls": False, "tool_choice": "required"},
            {"type": "any", "disable_parallel_tool_use": True},
        ),
    ],
)
def test_the_choice_of_a_tool(given: dict[str, Any], choice: dict[str, Any] | None) -> None:
    tools = [{"type": "function", "function": {"name": "f"}}]
    assert _translated(tools=tools, **given).get("tool_choice") == choice
    assert "tool_choice" not in _translated(**given)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"max_tokens": 5}, {"max_tokens": 5}),
        ({"max_tokens": 5, "max_completion_tokens": 6}, {"max_tokens": 6}),
        ({"temperature": 0}, {"temperature": 0.0}),
        ({"temperature": 1.7}, {"temperature": 1.0}),
        ({"top_p": 0.5}, {"top_p": 0.5}),
        ({"stop": "END"}, {"stop_sequences": ["END"]}),
        ({"stop": ["A", "B"]}, {"stop_sequences": ["A", "B"]}),
        ({"stop": []}, {}),
        ({"seed": 1, "logprobs": True, "response_format": {"type": "json_object"}}, {}),
    ],
)
def test_parameters_of_an_answer_are_translated(given: dict[str, Any], said: dict[str, Any]) -> None:
    assert _translated(**given) == {**_translated(), **said}
