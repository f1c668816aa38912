"""Structured logs on standard error: one JSON object per line, or readable lines on a terminal.

The last step before printing redacts everything in the format of our credentials, whatever its source.
"""

import json
import logging
import re
import sys
from contextvars import ContextVar
from typing import Any

import structlog
from structlog.typing import EventDict, WrappedLogger

from roost.core.problem import DependencyAway

request_id: ContextVar[str | None] = ContextVar("request_id", default=None)

_MASK = "[redacted]"
_JSON = json.JSONEncoder(default=repr)
# Also matches texts that turn out to be no JWT, to their end, so that hostile lines take linear time.
_JWT = re.compile(r"eyJ[\w-]{8,}+(\.[\w-]+\.[\w-]+)?")
# Gateway and internal tokens, credentials in query strings and headers; each contains or follows one of these markers.
_MARKERS = ("rst_", "token=", "bearer", "basic")
_CREDENTIAL = re.compile(
    r"rst_[A-Za-z]*_?[0-9a-f]{16,}"
    r"|(?<=token=)[^&\s\"'\\]+"
    r"|(?i:(?<=bearer )|(?<=basic ))[\w.~+/=-]{8,}"
)


def redact_credentials(text: str) -> str:
    """Replace every credential of ours in `text` by `[redacted]`."""
    text = _JWT.sub(lambda match: _MASK if match[1] else match[0], text)
    folded = text.casefold()
    if not any(marker in folded for marker in _MARKERS):  # true for nearly every line, and much faster than the regex
        return text
    return _CREDENTIAL.sub(_MASK, text)


def configure_logging(level: str = "info", *, pretty: bool | None = None) -> None:
    """Configure the process's logging once, at start."""
    terminal = sys.stderr.isatty() if pretty is None else pretty
    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        _add_context,
        *([] if level == "debug" else [_drop_consequence]),
    ]
    # Plain tracebacks on a terminal too: rich ones print local variables, which contain secrets.
    readable = structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)
    last: list[Any] = [readable if terminal else _as_json, _redact_line]
    structlog.configure(
        processors=[*shared, structlog.processors.format_exc_info, *last],
        wrapper_class=structlog.make_filtering_bound_logger(getattr(logging, level.upper())),
        logger_factory=structlog.WriteLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr)
    for handler in logging.getLogger().handlers:
        handler.setFormatter(_Redacting("%(levelname)s %(name)s %(message)s"))


def get_logger(name: str) -> structlog.stdlib.BoundLogger:
    return structlog.get_logger(logger_name=name)  # structlog reserves `logger` as a parameter


def _add_context(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    if "logger_name" in event:
        event["logger"] = event.pop("logger_name")
    if (current := request_id.get()) is not None:
        event["request_id"] = current
    return event


def _drop_consequence(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """Drop what failed because a part that everything depends on is away, which is in the log already."""
    found = event.get("exc_info")
    error = sys.exception() if found is True else found
    reasons = {event.get(name) for name in ("reason", "error", "problem")}
    messages = {kind.message for kind in DependencyAway.__subclasses__()}
    if isinstance(error, DependencyAway) or not messages.isdisjoint(reasons):
        raise structlog.DropEvent
    return event


def _as_json(_logger: WrappedLogger, _method: str, event: EventDict) -> str:
    return _JSON.encode(event)


def _redact_line(_logger: WrappedLogger, _method: str, line: str) -> str:
    return redact_credentials(line)


class _Redacting(logging.Formatter):
    """Redacts messages and tracebacks of libraries."""

    def format(self, record: logging.LogRecord) -> str:
        return redact_credentials(super().format(record))
