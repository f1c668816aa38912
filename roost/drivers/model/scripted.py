"""Scripted stand-in for a model: deterministic and offline, to try and test Roost without an account.

It repeats the user's message and obeys three commands in it: `/say TEXT` answers with the text, `/tool NAME
{arguments}` calls a tool and reports its result, `/slow N` writes N words slowly.
"""

import asyncio
import hashlib
import json
import re
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from typing import Any, cast

from roost.core import clock
from roost.drivers.model.chat import ChatRequest, estimate_tokens
from roost.drivers.model.contract import Json, ModelUpstream, UpstreamRefused

MODEL = "scripted"
_GREETING = "I am Roost's scripted stand-in model, not a language model."
_MAX_ECHO_LENGTH = 500
_MAX_RESULT_LENGTH = 2_000
_MAX_SLOW_WORDS = 2_000
_SLOW_PAUSE_SECONDS = 0.05

# Engines wrap hidden context like this, also in messages of the user; it must never be echoed.
_BLOCK = re.compile(r"<<<BEGIN_(\w{1,64})>>>.*?(?:<<<END_\1>>>|\Z)", re.DOTALL)
_STRAY_END = re.compile(r"<<<END_\w{1,64}>>>")
# OpenClaw adds the time before the user's text and facts of its session after it.
_TIME_PREFIX = re.compile(r"\A\[[A-Z][a-z]{2} \d{4}-\d\d-\d\d \d\d:\d\d[^\]\n]{0,40}\]\s*")
_RUNTIME_SUFFIX = re.compile(r"(?:\A|\n\n)Runtime: agent=[^\n]*\Z")
_COMMAND = re.compile(r"(?:^|(?<=\s))/(say|slow|tool)[ \t]+(?=\S)")


@dataclass(frozen=True)
class ScriptedReply:
    """A reply: a text, or a call of one tool. pause_seconds: between two words."""

    text: str = ""
    tool: str | None = None
    arguments: str = "{}"
    pause_seconds: float = 0.0

    @property
    def words(self) -> Sequence[str]:
        return re.findall(r"\S+\s*|\s+", self.text)

    @property
    def finish_reason(self) -> str:
        return "stop" if self.tool is None else "tool_calls"


class ScriptedUpstream(ModelUpstream):
    def __init__(self, name: str = MODEL) -> None:
        super().__init__(name)

    async def list_models(self) -> Sequence[str]:
        return (MODEL,)

    async def complete(self, request: ChatRequest) -> Json:
        reply = _checked_reply(request)
        await asyncio.sleep(reply.pause_seconds * len(reply.words))
        message: Json = {"role": "assistant", "content": reply.text or None}
        digest = _digest(request)
        if reply.tool is not None:
            message["tool_calls"] = [_tool_call(reply, digest)]
        choice = {"index": 0, "message": message, "finish_reason": reply.finish_reason, "logprobs": None}
        return {**_head(digest, "chat.completion"), "choices": [choice], "usage": _usage(request, reply)}

    async def stream(self, request: ChatRequest) -> AsyncGenerator[Json, None]:
        reply = _checked_reply(request)
        digest = _digest(request)
        head = _head(digest, "chat.completion.chunk")
        yield {**head, "choices": [_chunk_choice({"role": "assistant", "content": ""})]}
        for word in reply.words:
            await asyncio.sleep(reply.pause_seconds)
            yield {**head, "choices": [_chunk_choice({"content": word})]}
        if reply.tool is not None:
            yield {**head, "choices": [_chunk_choice({"tool_calls": [{"index": 0, **_tool_call(reply, digest)}]})]}
        yield {**head, "choices": [_chunk_choice({}, reply.finish_reason)]}
        if request.wants_usage:
            yield {**head, "choices": [], "usage": _usage(request, reply)}

    async def close(self) -> None:
        """Do nothing: there are no connections."""


def plan_reply(request: ChatRequest) -> ScriptedReply:
    """Return the reply to a request."""
    for message in reversed(request.messages):
        if message.role == "tool":
            return ScriptedReply(f"The tool answered: {_truncate(_user_text(message.text), _MAX_RESULT_LENGTH)}")
        if message.role == "user" and (text := _user_text(message.text)):
            return _run_command(text, request)
    return ScriptedReply(f"{_GREETING} You said nothing.")


def _checked_reply(request: ChatRequest) -> ScriptedReply:
    if request.model != MODEL:
        raise UpstreamRefused("The stand-in has only the model `scripted`", extra={"code": "model_not_found"})
    return plan_reply(request)


def _user_text(text: str) -> str:
    """Return the text of a user or a tool, without the context that engines add."""
    shown = _STRAY_END.split(_BLOCK.sub("", text))[-1].strip()
    return _RUNTIME_SUFFIX.sub("", _TIME_PREFIX.sub("", shown)).strip()


def _run_command(text: str, request: ChatRequest) -> ScriptedReply:
    found = _COMMAND.search(text)
    if found is None:
        return ScriptedReply(f"{_GREETING} You said: {_truncate(text, _MAX_ECHO_LENGTH)}")
    rest = text[found.end() :]
    match found[1]:
        case "say":
            return ScriptedReply(rest)
        case "slow":
            return _slow_reply(rest.split()[0])
        case _:
            return _tool_reply(rest, request)


def _slow_reply(count: str) -> ScriptedReply:
    if not re.fullmatch(r"[0-9]{1,4}", count) or not 1 <= int(count) <= _MAX_SLOW_WORDS:
        return ScriptedReply(f"{_GREETING} /slow needs a number of words from 1 to {_MAX_SLOW_WORDS}.")
    return ScriptedReply(
        " ".join(str(number) for number in range(1, int(count) + 1)), pause_seconds=_SLOW_PAUSE_SECONDS
    )


def _tool_reply(rest: str, request: ChatRequest) -> ScriptedReply:
    name, *given = rest.split(maxsplit=1)
    offered = [] if request.tool_choice == "none" else [function.name for function in request.functions]
    if name not in offered:
        names = ", ".join(offered[:20]) or "none"
        return ScriptedReply(f"{_GREETING} I was not offered the tool {_truncate(name, 100)}. Offered: {names}")
    arguments = _arguments("".join(given))
    if arguments is None:
        return ScriptedReply(f"{_GREETING} The arguments of /tool are not a JSON object.")
    return ScriptedReply(tool=name, arguments=json.dumps(arguments))


def _arguments(text: str) -> Json | None:
    """Parse the JSON object that `text` starts with; empty if there is none, None if it is malformed."""
    if not text.startswith("{"):
        return {}
    try:
        value: Any = json.JSONDecoder().raw_decode(text)[0]
    except (ValueError, RecursionError):
        return None
    return cast("Json", value)


def _truncate(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[:longest] + "..."


def _digest(request: ChatRequest) -> str:
    """Return a digest of the request that does not depend on streaming."""
    content = request.model_dump_json(exclude_unset=True, exclude={"stream", "stream_options"})
    return hashlib.sha256(content.encode()).hexdigest()[:24]


def _head(digest: str, kind: str) -> Json:
    return {"id": f"chatcmpl-{digest}", "object": kind, "created": int(clock.utc_now().timestamp()), "model": MODEL}


def _chunk_choice(delta: Json, finish: str | None = None) -> Json:
    return {"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}


def _tool_call(reply: ScriptedReply, digest: str) -> Json:
    function = {"name": reply.tool, "arguments": reply.arguments}
    return {"id": f"call_{digest}", "type": "function", "function": function}


def _usage(request: ChatRequest, reply: ScriptedReply) -> Json:
    prompt = sum(estimate_tokens(message.text) for message in request.messages)
    completion = estimate_tokens(reply.text) if reply.tool is None else estimate_tokens(reply.tool + reply.arguments)
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}
