from typing import Any

import pytest

from roost.agents.models.gateway.token_count import TokenCount
from roost.drivers.model.chat import ChatRequest
from tests.agents.models.gateway.model_env import piece

REQUEST = ChatRequest.model_validate({"model": "m", "messages": [{"role": "user", "content": "x" * 40}]})


def _tokens(*answers: dict[str, Any]) -> tuple[int, int]:
    count = TokenCount(REQUEST)
    for answer in answers:
        count.add(answer)
    return count.prompt_tokens, count.completion_tokens


def test_usage_of_the_upstream_is_counted() -> None:
    usage = {"prompt_tokens": 7, "completion_tokens": 3}
    assert _tokens({"choices": [{"message": {"content": "y" * 400}}], "usage": usage}) == (7, 3)
    assert _tokens(piece("y" * 400), {"choices": [], "usage": usage}) == (7, 3)


def test_a_running_count_counts_as_it_is_in_the_end() -> None:
    counts = [{"prompt_tokens": 7, "completion_tokens": number} for number in (1, 2, 3)]
    assert _tokens(*(piece("a", usage=count) for count in counts), piece(usage=None)) == (7, 3)


def test_without_a_count_the_text_is_measured() -> None:
    assert _tokens(piece("y" * 8), piece("y" * 3)) == (10, 3)
    assert _tokens({"choices": [{"message": {"content": "y" * 8}}]}) == (10, 2)
    call = {"tool_calls": [{"index": 0, "function": {"arguments": "z" * 12}}]}
    assert _tokens({"choices": [{"delta": call}]}) == (10, 3)


@pytest.mark.parametrize(
    "odd",
    [
        {},
        {"usage": 7, "choices": 7},
        {"usage": {"prompt_tokens": "many", "completion_tokens": -1}},
        {"choices": [7, {"delta": {"content": 7, "tool_calls": [7]}}]},
    ],
)
def test_odd_answers_do_no_harm(odd: dict[str, Any]) -> None:
    assert _tokens(odd) in ((10, 0), (0, 0))
