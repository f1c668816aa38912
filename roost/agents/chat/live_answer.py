"""An answer that an agent is writing: any number of readers follow it from its beginning, at their own pace."""

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from enum import StrEnum

from roost.agents.chat.errors import AnswerFailed
from roost.core import clock
from roost.drivers.engine.abilities.chat import AnswerEvent, AnswerStopped, AnswerText, ToolUse

_MAX_CHARACTERS = 4_000_000
_MAX_TOOLS = 200


class AnswerState(StrEnum):
    COMPLETE = "complete"
    STOPPED = "stopped"
    FAILED = "failed"


@dataclass(frozen=True)
class AnswerEnd:
    state: AnswerState
    error: str | None = None


class LiveAnswer:
    """The answer so far. It keeps text and tools instead of events, so that a slow reader needs no memory."""

    def __init__(self, question: str) -> None:
        self.question = question
        self.started_at = clock.utc_now()
        self.end: AnswerEnd | None = None
        self._text = ""
        self._rewrites = 0
        self._tools: dict[str, ToolUse] = {}
        self._is_stopped = False
        self._changed = asyncio.Event()

    def add(self, event: AnswerEvent) -> None:
        """Add what the engine sent. Raises AnswerFailed if the answer becomes too long."""
        match event:
            case AnswerText(text, replaces):
                self._rewrites += replaces
                self._text = ("" if replaces else self._text) + text.encode(errors="replace").decode()
            case ToolUse():
                if event.id in self._tools or len(self._tools) < _MAX_TOOLS:
                    self._tools[event.id] = event
            case AnswerStopped():
                self._is_stopped = True
        self._notify()
        if len(self._text) > _MAX_CHARACTERS:
            raise AnswerFailed("The agent's answer is too long")

    def finish(self, error: str | None = None, *, stopped: bool = False) -> AnswerEnd:
        """End the answer, and return its end; an earlier end stays."""
        if self.end is None:
            ended = AnswerState.STOPPED if stopped or self._is_stopped else AnswerState.COMPLETE
            self.end = AnswerEnd(AnswerState.FAILED if error is not None else ended, error)
        self._notify()
        return self.end

    async def follow(self) -> AsyncGenerator[AnswerText | ToolUse | AnswerEnd, None]:
        """Yield the answer so far, then its parts as they come, and its end."""
        rewrites, sent, tools = self._rewrites, 0, dict[str, ToolUse]()
        while True:
            changed, end = self._changed, self.end
            for use in [use for use in self._tools.values() if tools.get(use.id) is not use]:
                tools[use.id] = use
                yield use
            if rewrites != self._rewrites:
                rewrites, sent = self._rewrites, len(self._text)
                yield AnswerText(self._text, replaces=True)
            elif len(self._text) > sent:
                part, sent = self._text[sent:], len(self._text)
                yield AnswerText(part)
            elif end is not None:
                yield end
                return
            else:
                await changed.wait()

    def _notify(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()
