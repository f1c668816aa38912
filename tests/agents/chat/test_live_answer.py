"""Answers that are being written: every reader sees all of it, at any pace."""

import asyncio

import pytest

from roost.agents.chat import live_answer
from roost.agents.chat.errors import AnswerFailed
from roost.agents.chat.live_answer import AnswerEnd, AnswerState, LiveAnswer
from roost.drivers.engine.abilities.chat import AnswerStopped, AnswerText, ToolState, ToolUse

RUNNING = ToolUse("call-1", "exec", "{}")
DONE = ToolUse("call-1", "exec", "{}", ToolState.DONE, "ok")
COMPLETE = AnswerEnd(AnswerState.COMPLETE)


@pytest.fixture
def answer() -> LiveAnswer:
    return LiveAnswer("why?")


async def read(answer: LiveAnswer) -> list[object]:
    return [event async for event in answer.follow()]


async def test_a_late_reader_sees_the_whole_answer_in_few_events(answer: LiveAnswer) -> None:
    for event in (AnswerText("on"), RUNNING, AnswerText("e"), DONE, AnswerText(" two")):
        answer.add(event)
    answer.finish()
    assert await read(answer) == [DONE, AnswerText("one two"), COMPLETE]


async def test_readers_follow_while_it_is_written(answer: LiveAnswer) -> None:
    readers = [asyncio.create_task(read(answer)) for _ in range(3)]
    for event in (AnswerText("a"), RUNNING, DONE, AnswerText("b")):
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        answer.add(event)
    answer.finish()
    expected = [AnswerText("a"), RUNNING, DONE, AnswerText("b"), COMPLETE]
    assert await asyncio.gather(*readers) == [expected] * 3


async def test_a_rewritten_answer_replaces_what_readers_have(answer: LiveAnswer) -> None:
    events = answer.follow()
    answer.add(AnswerText("draft"))
    assert await anext(events) == AnswerText("draft")
    answer.add(AnswerText("final", replaces=True))
    answer.add(AnswerText(" text"))
    assert await anext(events) == AnswerText("final text", replaces=True)
    answer.finish()
    assert await anext(events) == COMPLETE


@pytest.mark.parametrize(
    ("stopped", "error", "state"),
    [
        (False, None, AnswerState.COMPLETE),
        (True, None, AnswerState.STOPPED),
        (False, "no model", AnswerState.FAILED),
        (True, "no model", AnswerState.FAILED),
    ],
)
async def test_how_an_answer_ends(answer: LiveAnswer, stopped: bool, error: str | None, state: AnswerState) -> None:
    if stopped:
        answer.add(AnswerStopped())
    answer.finish(error)
    answer.finish(stopped=True)  # an earlier end stays
    assert await read(answer) == [AnswerEnd(state, error)]


async def test_hostile_answers_are_bounded(answer: LiveAnswer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_answer, "_MAX_CHARACTERS", 10)
    answer.add(AnswerText("\ud800 lone"))
    for number in range(1000):
        answer.add(ToolUse(str(number), "exec"))
    with pytest.raises(AnswerFailed):
        answer.add(AnswerText("x" * 20))
    answer.finish()
    events = await read(answer)
    assert len(events) <= 202
    "".join(event.text for event in events if isinstance(event, AnswerText)).encode()  # has no lone surrogate
