"""The fake engine's conversations, which its gateway stores (`conversations.py`)."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any

from roost.drivers.engine.abilities.agent_context import AgentContext
from roost.drivers.engine.abilities.chat import (
    AnswerEvent,
    AnswerText,
    ChatAbility,
    StoredConversation,
    StoredMessage,
    ToolUse,
    is_conversation_id,
)
from roost.drivers.engine.contract import EngineFailed
from roost.drivers.engine.gateway_http import send_json, stream_events
from roost.drivers.engine.task_json import parse_milliseconds, parse_objects
from roost.drivers.engine.transcript import Transcript, finish_use, shorten_text, start_use
from roost.drivers.model.json_access import as_object, as_string, parse_json


class FakeChat(ChatAbility):
    def __init__(self, port: int) -> None:
        self._port = port

    async def conversations(self, agent: AgentContext) -> Sequence[StoredConversation]:
        _, found = await send_json(agent.warden.dial, self._port, "GET /conversations", agent.token)
        listed = [
            StoredConversation(
                as_string(one.get("id")),
                title="",
                updated_at=parse_milliseconds(one.get("at")),
                preview=shorten_text(as_string(one.get("title")), 200),
            )
            for one in parse_objects(found.get("conversations"))
        ]
        ours = [conversation for conversation in listed if is_conversation_id(conversation.id)]
        return sorted(ours, key=lambda conversation: conversation.id, reverse=True)[:100]

    async def history(self, agent: AgentContext, conversation_id: str, limit: int) -> Sequence[StoredMessage]:
        request = f"GET /conversations/{conversation_id}"
        _, found = await send_json(agent.warden.dial, self._port, request, agent.token)
        transcript = Transcript()
        for entry in parse_objects(found.get("entries")):
            _add_entry(transcript, entry)
        return transcript.latest(limit)

    async def send(self, agent: AgentContext, conversation_id: str, text: str) -> AsyncGenerator[AnswerEvent, None]:
        request = f"POST /conversations/{conversation_id}"
        events = stream_events(agent.warden.dial, self._port, request, agent.token, {"text": text}, {})
        try:
            async for name, data in events:
                if name == "end":
                    return
                yield _read_event(as_object(parse_json(data)))
            raise EngineFailed("The gateway ended the answer early")
        finally:
            await events.aclose()


def _read_event(event: Mapping[str, Any]) -> AnswerText | ToolUse:
    if "error" in event:
        raise EngineFailed(as_string(event["error"]))
    if "text" in event:
        return AnswerText(as_string(event["text"]))
    tool, outcome = as_object(event.get("tool")), as_object(event.get("outcome"))
    use = start_use(tool.get("id"), tool.get("name"), tool.get("arguments"))
    return finish_use(use, as_string(outcome.get("text")), failed=outcome.get("failed") is True) if outcome else use


def _add_entry(transcript: Transcript, entry: Mapping[str, Any]) -> None:
    text, sent_at = as_string(entry.get("text")), parse_milliseconds(entry.get("at"))
    entry_id = as_string(entry.get("entryId"))
    match entry.get("role"):
        case "user":
            transcript.add_question(entry_id, text, sent_at)
        case "tool":
            transcript.finish_tool(as_string(entry.get("id")), text, failed=entry.get("failed") is True)
        case _:
            tools = [
                start_use(one.get("id"), one.get("name"), one.get("arguments"))
                for one in parse_objects(entry.get("tools"))
            ]
            transcript.add_answer(entry_id, text, sent_at, tools, stopped=entry.get("stopped") is True)
