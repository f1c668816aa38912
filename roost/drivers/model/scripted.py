"""A stand-in model: deterministic, offline, and honest about what it is.

It lets everything around a model be tried and tested without an account. It repeats what the user said, and obeys three
commands in the user's message: `/say TEXT` answers exactly that, `/tool NAME {arguments}` calls a tool and then tells
its result, `/slow N` takes its time over N words.
"""

import asyncio
import hashlib
import json
import re
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from typing import Any, cast

from roost.core import clock
from roost.drivers.model.chat import ChatRequest, estimate
from roost.drivers.model.contract import Json, ModelUpstream, UpstreamRefused

MODEL = "scripted"
_GREETING = "I am Roost's scripted stand-in model, not a language model."
_LONGEST_ECHO = 500
_LONGEST_RESULT = 2_000
_SLOW_WORDS = 2_000
_SLOW_PAUSE = 0.05

# Engines wrap what is not for the user's eyes like this, also as a message of the user's; it must never come back.
_BLOCK = re.compile(r"<<<BEGIN_(\w{1,64})>>>.*?(?:<<<END_\1>>>|\Z)", re.DOTALL)
_STRAY_END = re.compile(r"<<<END_\w{1,64}>>>")
# What OpenClaw sets before and after the user's words in the same message: the time, and facts of its session.
_STAMP = re.compile(r"\A\[[A-Z][a-z]{2} \d{4}-\d\d-\d\d \d\d:\d\d[^\]\n]{0,40}\]\s*")
_RUNTIME = re.compile(r"(?:\A|\n\n)Runtime: agent=[^\n]*\Z")
_COMMAND = re.compile(r"(?:^|(?<=\s))/(say|slow|tool)[ \t]+(?=\S)")


@dataclass(frozen=True)
class ScriptedReply:
    """What will be answered: a text, or a call of one tool. `pause` is in seconds, between two words."""

    text: str = ""
    tool: str | None = None
    arguments: str = "{}"
    pause: float = 0.0

    @property
    def words(self) -> Sequence[str]:
        return re.findall(r"\S+\s*|\s+", self.text)

    @property
    def finish(self) -> str:
        return "stop" if self.tool is None else "tool_calls"


class ScriptedUpstream(ModelUpstream):
    def __init__(self, name: str = MODEL) -> None:
        super().__init__(name)

    async def models(self) -> Sequence[str]:
        return (MODEL,)

    async def complete(self, request: ChatRequest) -> Json:
        reply = _planned(request)
        await asyncio.sleep(reply.pause * len(reply.words))
        message: Json = {"role": "assistant", "content": reply.text or None}
        digest = _digest(request)
        if reply.tool is not None:
            message["tool_calls"] = [_call(reply, digest)]
        choice = {"index": 0, "message": message, "finish_reason": reply.finish, "logprobs": None}
        return {**_head(digest, "chat.completion"), "choices": [choice], "usage": _usage(request, reply)}

    async def stream(self, request: ChatRequest) -> AsyncGenerator[Json, None]:
        reply = _planned(request)
        digest = _digest(request)
        head = _head(digest, "chat.completion.chunk")
        yield {**head, "choices": [_piece({"role": "assistant", "content": ""})]}
        for word in reply.words:
            await asyncio.sleep(reply.pause)
            yield {**head, "choices": [_piece({"content": word})]}
        if reply.tool is not None:
            yield {**head, "choices": [_piece({"tool_calls": [{"index": 0, **_call(reply, digest)}]})]}
        yield {**head, "choices": [_piece({}, reply.finish)]}
        if request.wants_usage:
            yield {**head, "choices": [], "usage": _usage(request, reply)}

    async def close(self) -> None:
        """There is nothing to let go of."""


def plan(request: ChatRequest) -> ScriptedReply:
    """What the request is answered with."""
    for message in reversed(request.messages):
        if message.role == "tool":
            return ScriptedReply(f"The tool answered: {_shortened(_visible(message.text), _LONGEST_RESULT)}")
        if message.role == "user" and (text := _visible(message.text)):
            return _obeyed(text, request)
    return ScriptedReply(f"{_GREETING} You said nothing.")


def _planned(request: ChatRequest) -> ScriptedReply:
    if request.model != MODEL:
        raise UpstreamRefused("The stand-in serves one model: scripted", extra={"code": "model_not_found"})
    return plan(request)


def _visible(text: str) -> str:
    """The words that are the user's own, or a tool's."""
    shown = _STRAY_END.split(_BLOCK.sub("", text))[-1].strip()
    return _RUNTIME.sub("", _STAMP.sub("", shown)).strip()


def _obeyed(text: str, request: ChatRequest) -> ScriptedReply:
    found = _COMMAND.search(text)
    if found is None:
        return ScriptedReply(f"{_GREETING} You said: {_shortened(text, _LONGEST_ECHO)}")
    rest = text[found.end() :]
    match found[1]:
        case "say":
            return ScriptedReply(rest)
        case "slow":
            return _slow(rest.split()[0])
        case _:
            return _tool(rest, request)


def _slow(count: str) -> ScriptedReply:
    if not re.fullmatch(r"[0-9]{1,4}", count) or not 1 <= int(count) <= _SLOW_WORDS:
        return ScriptedReply(f"{_GREETING} /slow takes a number of words from 1 to {_SLOW_WORDS}.")
    return ScriptedReply(" ".join(str(number) for number in range(1, int(count) + 1)), pause=_SLOW_PAUSE)


def _tool(rest: str, request: ChatRequest) -> ScriptedReply:
    name, *given = rest.split(maxsplit=1)
    offered = [] if request.tool_choice == "none" else [function.name for function in request.functions]
    if name not in offered:
        names = ", ".join(offered[:20]) or "none"
        return ScriptedReply(f"{_GREETING} I was not offered the tool {_shortened(name, 100)}. Offered: {names}")
    arguments = _arguments("".join(given))
    if arguments is None:
        return ScriptedReply(f"{_GREETING} The arguments of /tool are not a JSON object.")
    return ScriptedReply(tool=name, arguments=json.dumps(arguments))


def _arguments(text: str) -> Json | None:
    """The JSON object that `text` starts with; without one, no arguments; None when it is broken."""
    if not text.startswith("{"):
        return {}
    try:
        value: Any = json.JSONDecoder().raw_decode(text)[0]
    except (ValueError, RecursionError):
        return None
    return cast("Json", value)


def _shortened(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[:longest] + "..."


def _digest(request: ChatRequest) -> str:
    """The same for the same question, streamed or not."""
    asked = request.model_dump_json(exclude_unset=True, exclude={"stream", "stream_options"})
    return hashlib.sha256(asked.encode()).hexdigest()[:24]


def _head(digest: str, kind: str) -> Json:
    return {"id": f"chatcmpl-{digest}", "object": kind, "created": int(clock.utc_now().timestamp()), "model": MODEL}


def _piece(delta: Json, finish: str | None = None) -> Json:
    return {"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}


def _call(reply: ScriptedReply, digest: str) -> Json:
    function = {"name": reply.tool, "arguments": reply.arguments}
    return {"id": f"call_{digest}", "type": "function", "function": function}


def _usage(request: ChatRequest, reply: ScriptedReply) -> Json:
    asked = sum(estimate(message.text) for message in request.messages)
    answered = estimate(reply.text) if reply.tool is None else estimate(reply.tool + reply.arguments)
    return {"prompt_tokens": asked, "completion_tokens": answered, "total_tokens": asked + answered}
