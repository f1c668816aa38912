import json
from typing import Any

import pytest
from pydantic import ValidationError

from roost.drivers.model.chat import ChatRequest, estimate_tokens

HELLO = [{"role": "user", "content": "hello"}]


def _request(**fields: Any) -> ChatRequest:
    return ChatRequest.model_validate_json(json.dumps({"model": "m", "messages": HELLO, **fields}))


def test_unknown_fields_are_passed_on_unchanged() -> None:
    body = {
        "model": "m",
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}]},
            {"role": "assistant", "content": None, "refusal": None, "reasoning": "so"},
        ],
        "tools": [{"type": "function", "function": {"name": "f", "strict": True}}, {"type": "web_search"}],
        "response_format": {"type": "json_object"},
        "logit_bias": {"50256": -100},
    }
    assert ChatRequest.model_validate(body).request_body(stream=False) == body


def test_a_streamed_request_asks_for_usage() -> None:
    asked = _request(stream=True, stream_options={"other": 1}).for_model("own").request_body(stream=True)
    assert asked["model"] == "own"
    assert asked["stream"] is True
    assert asked["stream_options"] == {"include_usage": True, "other": 1}


def test_a_request_in_one_piece_has_no_options_of_a_stream() -> None:
    body = _request(stream=True, stream_options={"include_usage": True}).request_body(stream=False)
    assert "stream" not in body
    assert "stream_options" not in body


def test_directing_leaves_the_request_as_it_was() -> None:
    request = _request(stream=True)
    request.for_model("own")
    assert request.model == "m"
    assert not request.wants_usage


@pytest.mark.parametrize(
    "fields",
    [
        {"model": ""},
        {"model": "m" * 257},
        {"model": None},
        {"messages": []},
        {"messages": "hello"},
        {"messages": [{"role": "wizard", "content": "x"}]},
        {"messages": [{"role": "user", "content": 7}]},
        {"messages": [{"role": "user", "content": [{"text": "no type"}]}]},
        {"messages": HELLO * 10_001},
        {"tools": [{"function": {"name": "f"}}]},
        {"max_tokens": 0},
        {"stream": "perhaps"},
        {"temperature": "hot"},
    ],
)
def test_unreadable_fields_are_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        _request(**fields)


@pytest.mark.parametrize(
    "text", ['{"model":', '{"model":"m","messages":[{"role":"user","content":"\\ud800"}]}', "[" * 9999]
)
def test_malformed_json_is_refused(text: str) -> None:
    with pytest.raises(ValidationError):
        ChatRequest.model_validate_json(text)


def test_a_messages_text_is_its_words() -> None:
    parts = [
        {"type": "text", "text": "a"},
        {"type": "image_url", "image_url": {"url": "x"}},
        {"type": "text", "text": "b"},
    ]
    assert _request(messages=[{"role": "user", "content": parts}]).messages[0].text == "a\nb"
    assert _request(messages=[{"role": "assistant", "content": None}]).messages[0].text == ""


def test_an_estimate_counts_four_characters_a_token() -> None:
    assert [estimate_tokens(text) for text in ("", "a", "abcd", "abcde")] == [0, 1, 1, 2]


@pytest.mark.parametrize("field", ["stream", "max_tokens", "max_completion_tokens", "temperature", "top_p"])
def test_numbers_and_booleans_are_of_their_type(field: str) -> None:
    for value in ("1", 0 if field == "stream" else True):
        with pytest.raises(ValidationError):
            _request(**{field: value})
    assert getattr(_request(**{field: None}), field) is None
