"""An answer that an agent is writing: any number of readers follow it from its beginning, at their own pace."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum

from roost.agents.chat.errors import AnswerFailed
from roost.core import clock
from roost.drivers.engine.abilities.chat import AnswerEvent, AnswerStopped, AnswerText, ToolState, ToolUse

_MAX_CHARACTERS = 4_000_000
_MAX_TOOLS = 200
SILENCE_SECONDS = 15.0
"""Readers get a notice after each 15 seconds without a part of an answer."""


class AnswerState(StrEnum):
    COMPLETE = "complete"
    STOPPED = "stopped"
    FAILED = "failed"


@dataclass(frozen=True)
class AnswerEnd:
    state: AnswerState
    error: str | None = None


@dataclass(frozen=True)
class AnswerSilence:
    """Seconds since the last part of an answer, while the agent waits for its model."""

    seconds: int


AnswerPart = AnswerText | ToolUse | AnswerSilence | AnswerEnd


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
        self._changed_at = clock.monotonic_seconds()

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

    async def follow(self) -> AsyncGenerator[AnswerPart, None]:
        """Yield the answer so far, then its parts as they come, and its end; also how long the model is silent."""
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
                until_notice = SILENCE_SECONDS - self._silent_seconds() % SILENCE_SECONDS
                with suppress(TimeoutError):
                    async with asyncio.timeout(until_notice):
                        await changed.wait()
                if not changed.is_set() and not self._runs_tool():
                    yield AnswerSilence(round(self._silent_seconds()))

    def _runs_tool(self) -> bool:
        return any(use.state is ToolState.RUNNING for use in self._tools.values())

    def _silent_seconds(self) -> float:
        return clock.monotonic_seconds() - self._changed_at

    def _notify(self) -> None:
        self._changed_at = clock.monotonic_seconds()
        self._changed.set()
        self._changed = asyncio.Event()
