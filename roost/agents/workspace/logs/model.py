"""Parsing of log lines: level and source, in the formats of the engines.

Lines are untrusted: they are truncated and sanitized first, and a line of unknown format is a message of level INFO.
The time is the warden's, when a process in the container wrote the line, not the time that the line claims.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, cast

from roost.core.problem import ServiceUnavailable, TooManyRequests
from roost.core.sanitize import sanitize_line
from roost.warden_client.client import LogLine

LINE_LIMIT = 100
_LINE_CHARS = 16 * 1024 + 16  # the limit of a regular warden


class LogLevel(StrEnum):
    """Levels, lowest first (contract: `TRACE` to `FATAL`)."""

    TRACE = "TRACE"
    DEBUG = "DEBUG"
    INFO = "INFO"
    WARN = "WARN"
    ERROR = "ERROR"
    FATAL = "FATAL"


_RANKS = {level: rank for rank, level in enumerate(LogLevel)}
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
_KNOWN_FIELDS = frozenset({"time", "level", "subsystem", "message", "hostname", "_meta"})


@dataclass(frozen=True)
class LogMessage:
    """One line for readers (contract: Log stream message)."""

    timestamp: datetime
    level: LogLevel
    source: str
    message: str


@dataclass(frozen=True)
class LogFilter:
    """Minimum level, and a source including its subsystems (`gateway`, `gateway/ws`)."""

    level: LogLevel = LogLevel.TRACE
    source: str | None = None

    def matches(self, message: LogMessage) -> bool:
        if _RANKS[message.level] < _RANKS[self.level]:
            return False
        return self.source is None or f"{message.source}/".startswith(f"{self.source}/")


def truncate_line(text: str) -> str:
    """Truncate a text to the maximum length of a line."""
    return text[:_LINE_CHARS]


def parse_line(line: LogLine) -> LogMessage:
    """Convert a line from the warden to a message; never raises."""
    text = sanitize_line(truncate_line(line.text))
    process = _SOURCES.get(line.source, sanitize_line(line.source[:64]))
    return _parse_json(line.time, process, text) or _parse_text(line.time, process, text)


def _parse_json(time: datetime, process: str, text: str) -> LogMessage | None:
    """Parse a line that is a JSON object, as OpenClaw writes to its console and to its file."""
    if not text.startswith("{"):
        return None
    try:
        fields = cast("dict[str, Any]", json.loads(text))
        meta: dict[str, Any] = fields.get("_meta") or {}
        level = _LEVELS[str(fields.get("level") or meta["logLevelName"]).upper()]
        message = fields["message"]
        subsystem = fields.get("subsystem") or _logger_subsystem(meta.get("name"))
        rest = {key: value for key, value in fields.items() if key not in _KNOWN_FIELDS and not key.isdecimal()}
        more = " " + json.dumps(rest, ensure_ascii=False) if rest else ""
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return None
    if not isinstance(message, str):
        return None
    source = subsystem if isinstance(subsystem, str) and _SUBSYSTEM.fullmatch(subsystem) else process
    return LogMessage(time, level, source, sanitize_line(message.replace("\n", " ") + more))


def _logger_subsystem(name: object) -> object:
    """Return the subsystem of an OpenClaw logger, whose name is JSON: `{"subsystem": "gateway/ws"}`."""
    return json.loads(name).get("subsystem") if isinstance(name, str) and name.startswith("{") else None


def _parse_text(time: datetime, process: str, text: str) -> LogMessage:
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


class TooManyLogReaders(TooManyRequests):
    message = "Too many log streams of this agent are open"


class LogReaderTooSlow(ServiceUnavailable):
    """Lines were dropped before the reader received them."""

    message = "Too slow for this log"
