"""A conversation's messages, built from the entries of an engine's transcript.

Engines store an answer as several entries: texts, calls of tools, and their results. They are untrusted.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from roost.drivers.engine.abilities.chat import MAX_DETAIL, MAX_TEXT, MessageRole, StoredMessage, ToolState, ToolUse
from roost.drivers.engine.gateway_json import parse_objects
from roost.drivers.model.json_access import as_string

_MAX_TOOLS = 200
_MAX_NAME = 100


@dataclass
class _Turn:
    id: str
    role: MessageRole
    sent_at: datetime | None
    texts: list[str] = field(default_factory=list[str])
    tools: dict[str, ToolUse] = field(default_factory=dict[str, ToolUse])
    is_stopped: bool = False

    def to_message(self) -> StoredMessage:
        text = shorten_text("\n\n".join(text.strip() for text in self.texts), MAX_TEXT)
        return StoredMessage(self.id, self.role, text, list(self.tools.values()), self.sent_at, self.is_stopped)


class Transcript:
    def __init__(self) -> None:
        self._turns: list[_Turn] = []
        self._continues = False

    def add_question(self, entry_id: str, text: str, sent_at: datetime | None) -> None:
        self._turns.append(_Turn(entry_id, MessageRole.USER, sent_at, [text]))

    def continue_answer(self) -> None:
        """Let the next part of the answer continue the last text, in the middle of a word maybe."""
        self._continues = True

    def add_answer(
        self,
        entry_id: str,
        text: str,
        sent_at: datetime | None,
        tools: Sequence[ToolUse] = (),
        *,
        stopped: bool = False,
    ) -> None:
        """Add a part of an answer, which belongs to the parts since the last question."""
        if not self._turns or self._turns[-1].role is MessageRole.USER:
            self._turns.append(_Turn(entry_id, MessageRole.ASSISTANT, sent_at))
        turn = self._turns[-1]
        if self._continues and turn.texts:
            turn.texts[-1] += text
        elif text.strip():
            turn.texts.append(text)
        self._continues = False
        for use in tools:
            if len(turn.tools) < _MAX_TOOLS:
                turn.tools[use.id] = use
        turn.is_stopped = turn.is_stopped or stopped

    def finish_tool(self, use_id: str, result: str, *, failed: bool) -> None:
        """Add the result of a tool of the last answer; ignored if the tool is unknown."""
        turn = self._turns[-1] if self._turns else None
        if turn is not None and (use := turn.tools.get(use_id)) is not None:
            turn.tools[use_id] = finish_use(use, result, failed=failed)

    def latest(self, limit: int) -> Sequence[StoredMessage]:
        return [turn.to_message() for turn in self._turns[-limit:]]


def start_use(use_id: object, name: object, arguments: object) -> ToolUse:
    """Return a running tool; arguments: JSON, or a text."""
    text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    shown_id, shown_name = shorten_text(str(use_id), _MAX_NAME), shorten_text(str(name), _MAX_NAME)
    return ToolUse(shown_id, shown_name, shorten_text(text, MAX_DETAIL))


def finish_use(use: ToolUse, result: str, *, failed: bool) -> ToolUse:
    return replace(use, state=ToolState.FAILED if failed else ToolState.DONE, result=shorten_text(result, MAX_DETAIL))


def shorten_text(text: str, limit: int) -> str:
    """Return at most `limit` characters and an ellipsis, without lone surrogates, which cannot be encoded."""
    shown = text if len(text) <= limit else text[:limit] + " ..."
    return shown.encode(errors="replace").decode()


def read_text(message: Mapping[str, Any]) -> str:
    """Return the text of a message, whose content is a text or a list of parts of several types (OpenAI's form)."""
    content = message.get("content")
    if isinstance(content, str):
        return content
    return "\n\n".join(as_string(part.get("text")) for part in parse_objects(content) if part.get("type") == "text")
