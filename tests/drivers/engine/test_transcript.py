"""Messages from the entries of engines, some of them hostile."""

from roost.drivers.engine.abilities.chat import MAX_DETAIL, MAX_TEXT, MessageRole, ToolState
from roost.drivers.engine.transcript import Transcript, shorten_text, start_use


def test_an_answer_is_all_until_the_next_question() -> None:
    transcript = Transcript()
    transcript.add_question("1", " why? ", None)
    transcript.add_answer("2", "Let me see.", None, [start_use("c1", "exec", {"command": "ls"})])
    transcript.finish_tool("c1", "files", failed=False)
    transcript.add_answer("3", "", None, [start_use("c2", "read", "{}")])
    transcript.finish_tool("c2", "missing", failed=True)
    transcript.add_answer("4", "Because.", None, stopped=True)
    transcript.add_question("5", "Really?", None)
    question, answer, second = transcript.latest(10)
    assert (question.role, question.text) == (MessageRole.USER, "why?")
    assert (answer.id, answer.text, answer.is_stopped) == ("2", "Let me see.\n\nBecause.", True)
    assert [(use.name, use.state, use.result) for use in answer.tools] == [
        ("exec", ToolState.DONE, "files"),
        ("read", ToolState.FAILED, "missing"),
    ]
    assert answer.tools[0].arguments == '{"command": "ls"}'
    assert [message.text for message in transcript.latest(1)] == [second.text]


def test_hostile_entries_are_bounded() -> None:
    transcript = Transcript()
    transcript.finish_tool("c0", "before any message", failed=False)
    transcript.add_answer("1", "x" * 2 * MAX_TEXT, None)
    for number in range(1000):
        transcript.add_answer("1", "", None, [start_use(str(number), "n" * 9999, ["x" * 9999])])
        transcript.finish_tool(str(number), "r" * 9999, failed=False)
    transcript.finish_tool("no such tool", "x", failed=False)
    (answer,) = transcript.latest(10)
    assert len(answer.text) < MAX_TEXT + 10
    assert len(answer.tools) == 200
    assert all(len(use.arguments) + len(use.result) < 2 * MAX_DETAIL + 10 for use in answer.tools)
    assert all(len(use.name) < 110 for use in answer.tools)


def test_shortened_texts_can_be_encoded() -> None:
    assert shorten_text("a\ud800b", 10).encode() == b"a?b"
    assert shorten_text("abcdef", 3) == "abc ..."
