"""What a line of a log says: its level and its source, read from the formats in which engines write them. Pure.

A line is hostile. It is cut and made plain first, and whatever has none of the known forms is a message of level INFO.
The time is the one at which the line was written by a process of the box, not the one that the line claims.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, cast

from roost.core.sanitize import sanitize_line
from roost.drivers.runtime.warden_client import LogLine

LINE_LIMIT = 100
_LINE_CHARS = 16 * 1024 + 16  # as long as an honest warden makes them


class LogLevel(StrEnum):
    """Lowest first (contract: `TRACE` to `FATAL`)."""

    TRACE = "TRACE"
    DEBUG = "DEBUG"
    INFO = "INFO"
    WARN = "WARN"
    ERROR = "ERROR"
    FATAL = "FATAL"

    @property
    def rank(self) -> int:
        return _ORDER[self]


_ORDER = {level: rank for rank, level in enumerate(LogLevel)}
_LEVELS: Mapping[str, LogLevel] = {
    **{level.value: level for level in LogLevel},
    "WARNING": LogLevel.WARN,
    "CRITICAL": LogLevel.FATAL,
    "NOTICE": LogLevel.INFO,
}
_SOURCES: Mapping[str, str] = {"build": "script/build", "start": "script/start"}

_NAME = r"[A-Za-z0-9_][\w./:@-]{0,63}"
_TIME = r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?"
_LOGGED = re.compile(rf"(?:{_TIME} )?({'|'.join(_LEVELS)}):? (?:({_NAME}): )?(.*)", re.ASCII | re.DOTALL)
_BRACKETED = re.compile(rf"(?:{_TIME} )?\[({_NAME})\] (.*)", re.ASCII | re.DOTALL)
_STAMPED = re.compile(rf"{_TIME} (.*)", re.ASCII | re.DOTALL)
_SUBSYSTEM = re.compile(_NAME, re.ASCII)
_FORM = frozenset({"time", "level", "subsystem", "message", "hostname", "_meta"})


@dataclass(frozen=True)
class LogMessage:
    """One line, as people get it (contract: Log stream message)."""

    timestamp: datetime
    level: LogLevel
    source: str
    message: str


@dataclass(frozen=True)
class LogFilter:
    """What a reader wants: this level and those above it, this source and those under it (`gateway`, `gateway/ws`)."""

    level: LogLevel = LogLevel.TRACE
    source: str | None = None

    def admits(self, message: LogMessage) -> bool:
        if message.level.rank < self.level.rank:
            return False
        return self.source is None or f"{message.source}/".startswith(f"{self.source}/")


def cut(text: str) -> str:
    """No longer than a line may be."""
    return text[:_LINE_CHARS]


def read(line: LogLine) -> LogMessage:
    """A line of the warden as a message. Never raises, whatever the line holds."""
    text = sanitize_line(cut(line.text))
    process = _SOURCES.get(line.source, sanitize_line(line.source[:64]))
    return _structured(line.time, process, text) or _written(line.time, process, text)


def _structured(time: datetime, process: str, text: str) -> LogMessage | None:
    """A JSON object a line, as OpenClaw writes them to its console and to its file."""
    if not text.startswith("{"):
        return None
    try:
        fields = cast("dict[str, Any]", json.loads(text))
        about: dict[str, Any] = fields.get("_meta") or {}
        level = _LEVELS[str(fields.get("level") or about["logLevelName"]).upper()]
        message = fields["message"]
        subsystem = fields.get("subsystem") or _inner(about.get("name"))
        rest = {key: value for key, value in fields.items() if key not in _FORM and not key.isdecimal()}
        more = " " + json.dumps(rest, ensure_ascii=False) if rest else ""
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return None
    if not isinstance(message, str):
        return None
    source = subsystem if isinstance(subsystem, str) and _SUBSYSTEM.fullmatch(subsystem) else process
    return LogMessage(time, level, source, sanitize_line(message.replace("\n", " ") + more))


def _inner(name: object) -> object:
    """`{"subsystem": "gateway/ws"}` as a text in a field: the name of one of OpenClaw's loggers."""
    return json.loads(name).get("subsystem") if isinstance(name, str) and name.startswith("{") else None


def _written(time: datetime, process: str, text: str) -> LogMessage:
    if found := _LOGGED.fullmatch(text):
        level, logger, message = found.groups()
        return LogMessage(time, _LEVELS[level], logger.replace(".", "/") if logger else process, message)
    if found := _BRACKETED.fullmatch(text):
        name, message = found.groups()
        if level := _LEVELS.get(name.upper()):
            return LogMessage(time, level, process, message)
        return LogMessage(time, LogLevel.WARN if name == "warden" else LogLevel.INFO, name, message)
    found = _STAMPED.fullmatch(text)
    return LogMessage(time, LogLevel.INFO, process, found[1] if found else text)
