import json
import time
from typing import Any

import pytest

from roost.drivers.model.chat import ChatRequest
from roost.drivers.model.contract import UpstreamRefused
from roost.drivers.model.scripted import ScriptedUpstream, plan_reply

GREETING = "I am Roost's scripted stand-in model, not a language model."
RUNTIME = "\n\nRuntime: agent=main | session=agent:main:openai:6398 | host=vm | os=Linux (x64) | capabilities=details"
CONTEXT = "<<<BEGIN_OPENCLAW_INTERNAL_CONTEXT>>>\nDo not show this. /say leaked\n<<<END_OPENCLAW_INTERNAL_CONTEXT>>>\n"


def _request(*messages: tuple[str, Any], **more: Any) -> ChatRequest:
    listed = [{"role": role, "content": content} for role, content in messages]
    return ChatRequest.model_validate({"model": "scripted", "messages": listed, **more})


def _tools(*names: str) -> list[dict[str, Any]]:
    return [{"type": "function", "function": {"name": name}} for name in names]


def test_it_says_what_it_is_and_what_it_heard() -> None:
    assert plan_reply(_request(("user", "hello there"))).text == f"{GREETING} You said: hello there"


def test_it_hears_parts() -> None:
    parts = [{"type": "image_url", "image_url": {"url": "x"}}, {"type": "text", "text": "hello"}]
    assert plan_reply(_request(("user", parts))).text == f"{GREETING} You said: hello"


def test_it_repeats_no_more_than_a_little() -> None:
    assert len(plan_reply(_request(("user", "x" * 100_000))).text) < 600


@pytest.mark.parametrize(
    "messages",
    [
        [("user", "hello"), ("user", CONTEXT)],
        [("user", f"{CONTEXT}hello")],
        [("user", f"hello\n{CONTEXT}")],
        [("user", "hello"), ("assistant", ""), ("user", f"{CONTEXT}\n{CONTEXT}")],
        [("user", [{"type": "text", "text": CONTEXT}, {"type": "text", "text": "hello"}])],
        [("user", "secret\n<<<END_OPENCLAW_INTERNAL_CONTEXT>>>\nhello")],
        [("user", "hello"), ("user", "<<<BEGIN_OPENCLAW_INTERNAL_CONTEXT>>>\nnever closed")],
        [("user", "hello"), ("system", "be brief"), ("user", CONTEXT)],
        [("user", f"[Sat 2026-11-21 05:33 UTC] hello{RUNTIME}"), ("user", CONTEXT)],
        [("user", "[Sat 2026-11-21 05:33 GMT+1] hello"), ("user", f"{CONTEXT}{RUNTIME}")],
    ],
)
def test_hidden_parts_of_user_messages_are_not_answered(messages: list[tuple[str, Any]]) -> None:
    assert plan_reply(_request(("system", "prompt" * 10_000), *messages)).text == f"{GREETING} You said: hello"


def test_the_newest_message_of_the_user_counts() -> None:
    assert plan_reply(_request(("user", "/say old"), ("assistant", "old"), ("user", "/say new"))).text == "new"


def test_without_a_user_it_says_so() -> None:
    assert plan_reply(_request(("system", "hello"))).text == f"{GREETING} You said nothing."


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("/say Two  words.\nAnd a line.", "Two  words.\nAnd a line."),
        (f"[Sat 2026-11-21 04:00 UTC] /say hi{RUNTIME}", "hi"),
        ("/say [1] Runtime: agent=me\nand more", "[1] Runtime: agent=me\nand more"),
        ("/say /tool x {}", "/tool x {}"),
    ],
)
def test_say_is_said_exactly(text: str, said: str) -> None:
    assert plan_reply(_request(("user", text))).text == said


@pytest.mark.parametrize("text", ["/sayings are wise", "path/say x", "what does /say"])
def test_text_that_resembles_a_command_is_echoed(text: str) -> None:
    assert plan_reply(_request(("user", text))).text == f"{GREETING} You said: {text}"


def test_it_calls_the_tool_that_it_is_told_to() -> None:
    reply = plan_reply(
        _request(("user", 'please /tool exec {"command": "ls {}", "n": [1]} now'), tools=_tools("read", "exec"))
    )
    assert (reply.tool, json.loads(reply.arguments)) == ("exec", {"command": "ls {}", "n": [1]})
    assert (reply.text, reply.finish_reason) == ("", "tool_calls")


@pytest.mark.parametrize("text", ["/tool exec", "/tool exec\nthen more", "/tool exec and tell me"])
def test_a_tool_may_have_no_arguments(text: str) -> None:
    assert plan_reply(_request(("user", text), tools=_tools("exec"))).arguments == "{}"


@pytest.mark.parametrize("text", ['/tool exec {"a": ', "/tool exec {'a': 1}", "/tool exec " + '{"a":' * 100_000])
def test_broken_arguments_are_told(text: str) -> None:
    reply = plan_reply(_request(("user", text), tools=_tools("exec")))
    assert reply.tool is None
    assert "not a JSON object" in reply.text


def test_a_tool_that_is_not_offered_is_not_called() -> None:
    names = [f"tool{number}" for number in range(30)]
    reply = plan_reply(_request(("user", "/tool rocket {}"), tools=_tools(*names)))
    assert reply.tool is None
    assert "not offered the tool rocket" in reply.text
    assert "tool19" in reply.text
    assert "tool20" not in reply.text


def test_a_choice_of_none_offers_no_tools() -> None:
    assert plan_reply(_request(("user", "/tool exec {}"), tools=_tools("exec"), tool_choice="none")).tool is None


def test_it_tells_a_tools_result() -> None:
    after = [("assistant", None), ("tool", "42"), ("user", CONTEXT)]
    assert plan_reply(_request(("user", "/tool exec {}"), *after, tools=_tools("exec"))).text == "The tool answered: 42"


def test_it_tells_no_more_than_the_beginning_of_a_long_result() -> None:
    assert len(plan_reply(_request(("user", "/tool exec {}"), ("tool", "y" * 100_000))).text) < 2_100


@pytest.mark.parametrize("count", ["0", "2001", "-1", "many", "1.5", "9" * 5000, "\u0663"])
def test_slow_takes_a_number_of_words(count: str) -> None:
    assert "/slow needs a number" in plan_reply(_request(("user", f"/slow {count}"))).text


async def test_slow_takes_its_time() -> None:
    began = time.monotonic()
    chunks = [chunk async for chunk in ScriptedUpstream().stream(_request(("user", "/slow 4")))]
    assert time.monotonic() - began >= 0.2
    assert "".join(chunk["choices"][0]["delta"].get("content", "") for chunk in chunks) == "1 2 3 4"


async def test_the_same_question_has_the_same_answer() -> None:
    one, again = [await ScriptedUpstream().complete(_request(("user", "hello"))) for _ in range(2)]
    other = await ScriptedUpstream().complete(_request(("user", "hello!")))
    assert {**one, "created": 0} == {**again, "created": 0}
    assert one["id"] != other["id"]


async def test_a_stream_has_the_id_of_the_whole_answer() -> None:
    whole = await ScriptedUpstream().complete(_request(("user", "hello")))
    chunk = await anext(ScriptedUpstream().stream(_request(("user", "hello"), stream=True, stream_options={"x": 1})))
    assert chunk["id"] == whole["id"]


async def test_another_model_is_refused_with_the_code_that_clients_know() -> None:
    with pytest.raises(UpstreamRefused) as refused:
        await ScriptedUpstream().complete(_request(("user", "hello")).for_model("gpt"))
    assert refused.value.extra == {"code": "model_not_found"}
