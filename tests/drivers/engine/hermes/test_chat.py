"""What Hermes's events and entries tell, also when the agent has made them up."""

from typing import Any

import pytest

from roost.drivers.engine.abilities.chat import AnswerText, ToolState, ToolUse
from roost.drivers.engine.contract import EngineFailed
from roost.drivers.engine.hermes.chat import has_failed, read_chunk, read_tool


def test_a_tool_keeps_its_label_until_it_ends() -> None:
    tools: dict[str, ToolUse] = {}
    begun = {"tool": "terminal", "toolCallId": "c1", "label": "ls -la", "status": "running"}
    assert read_tool(begun, tools) == ToolUse("c1", "terminal", "ls -la")
    done = {"tool": "terminal", "toolCallId": "c1", "status": "completed"}
    assert read_tool(done, tools) == ToolUse("c1", "terminal", "ls -la", ToolState.DONE)


def test_malformed_chunks_have_no_text() -> None:
    assert read_chunk({"choices": [{"delta": {"content": "a"}}, {"delta": {}}]}) == [AnswerText("a")]
    for nothing in ({}, {"choices": [1, None]}, {"choices": [{"delta": {"content": {"x": 1}}}]}):
        assert list(read_chunk(nothing)) == []


@pytest.mark.parametrize("error", [{"message": "no model"}, {"message": 5}, "no model", 1])
def test_an_error_in_a_chunk(error: Any) -> None:
    with pytest.raises(EngineFailed):
        read_chunk({"choices": [], "error": error})


@pytest.mark.parametrize(
    ("result", "failed"),
    [
        ('{"output": "", "exit_code": 0, "error": null}', False),
        ('{"output": "", "exit_code": 3, "error": null}', True),
        ('{"error": "File not found"}', True),
        ('{"success": false}', True),
        ("error: not JSON", False),
        ("[" * 5000, False),
        ("[]", False),
    ],
)
def test_which_results_tell_of_a_failure(result: str, failed: bool) -> None:
    assert has_failed(result) is failed
