"""What OpenClaw's events and entries tell, also when the agent has made them up."""

from typing import Any

import pytest

from roost.drivers.engine.abilities.chat import AnswerStopped, AnswerText, ToolState, ToolUse
from roost.drivers.engine.contract import EngineFailed
from roost.drivers.engine.openclaw.chat import AnswerReader


def chat(state: str, **fields: Any) -> dict[str, Any]:
    return {"runId": "r", "state": state, **fields}


def tool(phase: str, **fields: Any) -> dict[str, Any]:
    return {"runId": "r", "stream": "tool", "data": {"phase": phase, "toolCallId": "c1", "name": "exec", **fields}}


def message(text: str) -> dict[str, Any]:
    return {"message": {"role": "assistant", "content": [{"type": "text", "text": text}]}}


def test_the_end_repeats_the_text_only_if_it_differs() -> None:
    reader = AnswerReader()
    assert reader.read(chat("delta", deltaText="a")) == [AnswerText("a")]
    assert reader.read(chat("delta", deltaText="b")) == [AnswerText("b")]
    assert reader.read(chat("final", **message("ab"))) == []
    assert reader.read(chat("final", **message("abc"))) == [AnswerText("abc", replaces=True)]
    assert reader.read(chat("final")) == []


def test_a_stopped_answer() -> None:
    reader = AnswerReader()
    assert reader.read(chat("aborted", **message("half"))) == [AnswerText("half", replaces=True), AnswerStopped()]


def test_a_replaced_text() -> None:
    reader = AnswerReader()
    reader.read(chat("delta", deltaText="draft"))
    assert reader.read(chat("delta", deltaText="final", replace=True)) == [AnswerText("final", replaces=True)]
    assert reader.read(chat("final", **message("final"))) == []


def test_tools_and_their_failures() -> None:
    reader = AnswerReader()
    begun = ToolUse("c1", "exec", '{"command": "false"}')
    assert reader.read(tool("start", args={"command": "false"})) == [begun]
    assert reader.read(tool("update", partialResult={})) == []
    result = {"content": [{"type": "text", "text": "out"}], "details": {"exitCode": 1}}
    assert reader.read(tool("result", result=result)) == [
        ToolUse("c1", "exec", begun.arguments, ToolState.FAILED, "out")
    ]


def test_a_failed_run() -> None:
    with pytest.raises(EngineFailed, match="no model"):
        AnswerReader().read(chat("error", errorMessage="no model"))
    with pytest.raises(EngineFailed):
        AnswerReader().read(chat("error", errorMessage={"x": 1}))


@pytest.mark.parametrize(
    "payload",
    [
        {},
        chat("status"),
        chat("delta", deltaText={"x": 1}),
        chat("final", message=[1]),
        chat("final", message={"content": [1, None, {"type": "text", "text": 5}]}),
        tool("other"),
        {"stream": "tool", "data": "x"},
        {"stream": "tool", "data": {"phase": "unknown"}},
    ],
)
def test_malformed_events_tell_nothing(payload: dict[str, Any]) -> None:
    assert list(AnswerReader().read(payload)) == []
