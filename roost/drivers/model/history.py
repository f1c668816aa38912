"""Repair a history that another provider's model made, so that this one can continue it. Pure.

Ids of tool calls have different forms (OpenAI: at most 40 characters, Mistral: nine letters and digits, Anthropic:
letters, digits, `_` and `-`, unique); some providers give none, or the same ones in each turn.
"""

import hashlib
import re
from collections.abc import Iterator, Sequence

from roost.drivers.model.chat import ChatMessage, ToolCall

_THOUGHTS = frozenset({"thinking", "reasoning", "redacted_thinking"})
_ID_LENGTH = 9
"""Of new ids, which fit each provider's form."""


def repair_history(messages: Sequence[ChatMessage], ids: re.Pattern[str], *, unique: bool) -> list[ChatMessage]:
    """Return the messages without thoughts, each in its place, and with ids of tool calls that match `ids`.

    The result of a call follows the call's id. `unique`: no id occurs twice in the history.
    """
    tool_ids = _ToolIds(ids, unique=unique)
    return [tool_ids.apply(message) for message in _without_thoughts(messages)]


def _without_thoughts(messages: Sequence[ChatMessage]) -> Iterator[ChatMessage]:
    """Yield what other models may read: their thoughts belong to the model that had them."""
    for message in messages:
        changes: dict[str, object] = {}
        if isinstance(message.content, list) and any(part.type in _THOUGHTS for part in message.content):
            changes["content"] = [part for part in message.content if part.type not in _THOUGHTS] or None
        if message.tool_calls is not None and not message.tool_calls:
            changes["tool_calls"] = None  # an empty list is refused
        yield message.model_copy(update=changes) if changes else message


class _ToolIds:
    def __init__(self, form: re.Pattern[str], *, unique: bool) -> None:
        self._form = form
        self._unique = unique
        self._used: set[str] = set()
        self._count = 0
        self._open: dict[str, list[str]] = {}  # ids of the last turn's calls -> new ones, without a result yet

    def apply(self, message: ChatMessage) -> ChatMessage:
        if message.tool_calls:
            self._open = {}
            return message.model_copy(update={"tool_calls": [self._rename_call(call) for call in message.tool_calls]})
        if message.role == "tool":
            given = message.tool_call_id or ""
            waiting = self._open.get(given, [])
            found = (waiting.pop(0) if len(waiting) > 1 else waiting[0]) if waiting else self._fit(given)
            return message if found == given else message.model_copy(update={"tool_call_id": found})
        return message

    def _rename_call(self, call: ToolCall) -> ToolCall:
        self._count += 1
        is_taken = self._unique and call.id in self._used
        new = self._make_id(call.id) if is_taken else self._fit(call.id)
        self._used.add(new)
        self._open.setdefault(call.id, []).append(new)
        return call if new == call.id else call.model_copy(update={"id": new})

    def _fit(self, identity: str) -> str:
        return identity if self._form.fullmatch(identity) else self._make_id(identity)

    def _make_id(self, identity: str) -> str:
        """Return a new id, the same one each time that the history is sent, as caches of prompts need."""
        return hashlib.sha256(f"{self._count} {identity}".encode(errors="replace")).hexdigest()[:_ID_LENGTH]
