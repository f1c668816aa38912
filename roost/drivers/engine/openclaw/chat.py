"""OpenClaw's conversations: sessions of its default agent, over RPC.

The engine repeats the whole text so far with each part of an answer, and sends the parts and the tools as events.
"""

from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from typing import Any

from roost.core import ids
from roost.drivers.engine.abilities.agent_context import AgentContext
from roost.drivers.engine.abilities.chat import (
    MAX_DETAIL,
    MAX_TEXT,
    AnswerEvent,
    AnswerStopped,
    AnswerText,
    ChatAbility,
    StoredConversation,
    StoredMessage,
    ToolUse,
    is_conversation_id,
)
from roost.drivers.engine.contract import EngineFailed
from roost.drivers.engine.gateway_json import parse_milliseconds, parse_objects
from roost.drivers.engine.openclaw.rpc import Json, OpenClawRpc
from roost.drivers.engine.transcript import Transcript, finish_use, read_text, shorten_text, start_use
from roost.drivers.model.json_access import as_object, as_string

_SEND_SECONDS = 60.0  # the first message waits until the workspace is prepared
_ABORT_SECONDS = 5.0
_MAX_CONVERSATIONS = 100
_MAX_ENTRIES = 1000  # maximum of the engine; an answer has several
_MAX_TITLE = 200


class OpenClawChat(ChatAbility):
    async def conversations(self, agent: AgentContext) -> Sequence[StoredConversation]:
        query = {"limit": 2 * _MAX_CONVERSATIONS, "includeDerivedTitles": True, "includeLastMessage": True}
        async with OpenClawRpc.open(agent.warden.dial, agent.token) as rpc:
            found = as_object(await rpc.call("sessions.list", query))
        listed = [_conversation(session) for session in parse_objects(found.get("sessions"))]
        ours = [conversation for conversation in listed if is_conversation_id(conversation.id)]
        return sorted(ours, key=lambda conversation: conversation.id, reverse=True)[:_MAX_CONVERSATIONS]

    async def history(self, agent: AgentContext, conversation_id: str, limit: int) -> Sequence[StoredMessage]:
        query = {"sessionKey": conversation_id, "limit": _MAX_ENTRIES, "maxChars": MAX_TEXT}
        async with OpenClawRpc.open(agent.warden.dial, agent.token) as rpc:
            found = as_object(await rpc.call("chat.history", query))
        transcript, failed = Transcript(), _failed_tools(found)
        for entry in parse_objects(found.get("messages")):
            _add_entry(transcript, entry, failed)
        return transcript.latest(limit)

    async def send(self, agent: AgentContext, conversation_id: str, text: str) -> AsyncGenerator[AnswerEvent, None]:
        run_id = ids.new_id()
        run = {"sessionKey": conversation_id, "runId": run_id}
        async with OpenClawRpc.open(agent.warden.dial, agent.token, ("chat", "agent")) as rpc:
            message = {"sessionKey": conversation_id, "message": text, "idempotencyKey": run_id}
            is_over = False
            try:
                await rpc.call("chat.send", message, _SEND_SECONDS)
                answer = AnswerReader()
                async for event in rpc.events():
                    payload = as_object(event.get("payload"))
                    if payload.get("runId") != run_id:
                        continue
                    is_over = payload.get("state") in {"final", "aborted", "error"}
                    for one in answer.read(payload):
                        yield one
                    if is_over:
                        return
            finally:
                if not is_over:
                    await rpc.call("chat.abort", run, _ABORT_SECONDS)


class AnswerReader:
    """The state of an answer that is being received."""

    def __init__(self) -> None:
        self._text = ""
        self._tools: dict[str, ToolUse] = {}

    def read(self, payload: Json) -> Sequence[AnswerEvent]:
        """Return what an event of the run tells. Raises EngineFailed if the run failed."""
        if payload.get("stream") == "tool":
            return self._read_tool(as_object(payload.get("data")))
        match payload.get("state"):
            case "delta":
                return self._add_text(as_string(payload.get("deltaText")), replaces=payload.get("replace") is True)
            case "final" | "aborted" as state:
                whole = read_text(as_object(payload.get("message")))
                events = self._add_text(whole, replaces=True) if whole and whole != self._text else []
                return events if state == "final" else [*events, AnswerStopped()]
            case "error":
                message = as_string(payload.get("errorMessage")) or "The agent could not answer"
                raise EngineFailed(shorten_text(message, MAX_DETAIL))
            case _:
                return []

    def _add_text(self, text: str, *, replaces: bool) -> list[AnswerEvent]:
        if not text and not replaces:
            return []
        self._text = text if replaces else self._text + text
        return [AnswerText(text, replaces)]

    def _read_tool(self, data: Json) -> Sequence[AnswerEvent]:
        use_id = as_string(data.get("toolCallId"))
        match data.get("phase"):
            case "start":
                use = start_use(use_id, data.get("name"), data.get("args"))
            case "result":
                begun = self._tools.pop(use_id, None) or start_use(use_id, data.get("name"), "")
                result = as_object(data.get("result"))
                exit_code = as_object(result.get("details")).get("exitCode") or 0
                use = finish_use(begun, read_text(result), failed=data.get("isError") is True or exit_code != 0)
            case _:
                return []
        self._tools[use_id] = use
        return [use]


def _conversation(session: Mapping[str, Any]) -> StoredConversation:
    key = as_string(session.get("key")).rpartition(":")[2]
    names = "derivedTitle", "lastMessagePreview"
    title, preview = (shorten_text(as_string(session.get(name)), _MAX_TITLE) for name in names)
    return StoredConversation(key, title, parse_milliseconds(session.get("updatedAt")), preview)


def _failed_tools(history: Json) -> set[str]:
    """Return the ids of failed tools, among them commands with an exit code, which are no errors of their entries."""
    groups = parse_objects(history.get("activity"))
    items = [item for group in groups for item in parse_objects(group.get("items"))]
    return {as_string(item.get("toolCallId")) for item in items if item.get("status") == "failed"}


def _add_entry(transcript: Transcript, entry: Mapping[str, Any], failed: Collection[str]) -> None:
    meta = as_object(entry.get("__openclaw"))
    entry_id = shorten_text(as_string(meta.get("id")), 100)
    sent_at = parse_milliseconds(entry.get("timestamp"))
    match entry.get("role"):
        case "user":
            transcript.add_question(entry_id, read_text(entry), sent_at)
        case "assistant":
            calls = [part for part in parse_objects(entry.get("content")) if part.get("type") == "toolCall"]
            tools = [start_use(call.get("id"), call.get("name"), call.get("arguments")) for call in calls]
            stopped = as_object(entry.get("openclawAbort")).get("aborted") is True
            transcript.add_answer(entry_id, read_text(entry), sent_at, tools, stopped=stopped)
        case "toolResult":
            use_id = as_string(entry.get("toolCallId"))
            transcript.finish_tool(use_id, read_text(entry), failed=use_id in failed or entry.get("isError") is True)
        case _:
            pass
