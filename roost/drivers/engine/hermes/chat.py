"""Hermes's conversations: its sessions, over its REST API.

A streamed chat completion continues the session that a header names; Hermes stops an answer whose connection closes.
It tells of tools as events of their own, without results, which only the history has.
"""

import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from typing import Any

from roost.drivers.engine.abilities.agent_context import AgentContext
from roost.drivers.engine.abilities.chat import (
    MAX_DETAIL,
    AnswerEvent,
    AnswerText,
    ChatAbility,
    StoredConversation,
    StoredMessage,
    ToolUse,
    is_conversation_id,
)
from roost.drivers.engine.contract import EngineFailed
from roost.drivers.engine.gateway_http import GatewayHttpAbility, stream_events
from roost.drivers.engine.gateway_json import parse_objects, parse_seconds
from roost.drivers.engine.transcript import Transcript, finish_use, read_text, shorten_text, start_use
from roost.drivers.model.json_access import as_list, as_object, as_string, parse_json

# What Hermes itself asks the model and stores as the user's: "Continue exactly where you left off" after an answer that
# was cut off, for one. Whole notes only, so that a person's own words are kept.
_NOTE = re.compile(
    r"\[System: (The previous response was cut off by a |Your previous response was truncated by |"
    r"Your previous response contained only |Your previous tool call \(|Continue now\. Execute ).*\]",
    re.DOTALL,
)
_TOOL_EVENT = "hermes.tool.progress"
_HISTORY_BYTES = 8 << 20
_MAX_CONVERSATIONS = 100
_MAX_ENTRIES = 1000
_MAX_TITLE = 200


class HermesChat(GatewayHttpAbility, ChatAbility):
    async def conversations(self, agent: AgentContext) -> Sequence[StoredConversation]:
        request = f"GET /api/sessions?limit={2 * _MAX_CONVERSATIONS}&source=api_server"
        _, found = await self._send(agent, request)
        sessions = [one for one in parse_objects(found.get("data")) if is_conversation_id(as_string(one.get("id")))]
        newest_first = sorted(sessions, key=lambda session: session["id"], reverse=True)
        return [_conversation(session) for session in newest_first[:_MAX_CONVERSATIONS]]

    async def history(self, agent: AgentContext, conversation_id: str, limit: int) -> Sequence[StoredMessage]:
        request = f"GET /api/sessions/{conversation_id}/messages"
        status, found = await self._send(agent, request, expected=(200, 404), limit=_HISTORY_BYTES)
        transcript = Transcript()
        for entry in as_list(found.get("data"))[-_MAX_ENTRIES:] if status == 200 else []:
            _add_entry(transcript, as_object(entry))
        return transcript.latest(limit)

    async def send(self, agent: AgentContext, conversation_id: str, text: str) -> AsyncGenerator[AnswerEvent, None]:
        body = {"model": "hermes-agent", "messages": [{"role": "user", "content": text}], "stream": True}
        header = {"X-Hermes-Session-Id": conversation_id}
        request = "POST /v1/chat/completions"
        answer = stream_events(agent.warden.dial, self._port, request, agent.token, body, header)
        tools: dict[str, ToolUse] = {}
        async with aclosing(answer) as events:
            async for name, data in events:
                if data == "[DONE]":
                    return
                event = as_object(parse_json(data))
                for one in [read_tool(event, tools)] if name == _TOOL_EVENT else read_chunk(event):
                    yield one
            raise EngineFailed("The gateway ended the answer early")


def read_tool(event: Mapping[str, Any], tools: dict[str, ToolUse]) -> ToolUse:
    use_id = as_string(event.get("toolCallId"))
    if event.get("status") != "completed":
        use = start_use(use_id, event.get("tool"), as_string(event.get("label")))
    else:
        use = finish_use(tools.pop(use_id, None) or start_use(use_id, event.get("tool"), ""), "", failed=False)
    tools[use_id] = use
    return use


def read_chunk(chunk: Mapping[str, Any]) -> Sequence[AnswerText]:
    """Return the text of a chunk of a chat completion. Raises EngineFailed for an error in it."""
    if chunk.get("error"):
        message = as_string(as_object(chunk["error"]).get("message")) or "The agent could not answer"
        raise EngineFailed(shorten_text(message, MAX_DETAIL))
    deltas = [as_object(choice.get("delta")) for choice in parse_objects(chunk.get("choices"))]
    text = "".join(as_string(delta.get("content")) for delta in deltas)
    return [AnswerText(text)] if text else []


def _conversation(session: Mapping[str, Any]) -> StoredConversation:
    title, preview = (shorten_text(as_string(session.get(name)), _MAX_TITLE) for name in ("title", "preview"))
    return StoredConversation(session["id"], title, parse_seconds(session.get("last_active")), preview)


def _add_entry(transcript: Transcript, entry: Mapping[str, Any]) -> None:
    entry_id, content, sent_at = str(entry.get("id"))[:100], read_text(entry), parse_seconds(entry.get("timestamp"))
    match entry.get("role"):
        case "user" if _NOTE.fullmatch(content):
            transcript.continue_answer()
        case "user":
            transcript.add_question(entry_id, content, sent_at)
        case "assistant":
            calls = [
                (call.get("id"), as_object(call.get("function"))) for call in parse_objects(entry.get("tool_calls"))
            ]
            tools = [start_use(use_id, call.get("name"), call.get("arguments")) for use_id, call in calls]
            transcript.add_answer(entry_id, content, sent_at, tools)
        case "tool":
            transcript.finish_tool(as_string(entry.get("tool_call_id")), content, failed=has_failed(content))
        case _:
            pass


def has_failed(result: str) -> bool:
    """Return whether a tool's result tells of a failure, as the engine's own display decides."""
    found = as_object(parse_json(result))
    return bool(found.get("error")) or found.get("success") is False or bool(found.get("exit_code"))
