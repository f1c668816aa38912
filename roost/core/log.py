"""Structured logs on standard error: one JSON object a line, or readable lines on a terminal.

The last step before printing masks whatever looks like one of our credentials, whoever put it there.
"""

import json
import logging
import re
import sys
from contextvars import ContextVar
from typing import Any

import structlog
from structlog.typing import EventDict, WrappedLogger

request_id: ContextVar[str | None] = ContextVar("request_id", default=None)

_MASK = "[redacted]"
_JSON = json.JSONEncoder(default=repr)
# What is no JWT after all is matched too, to its end: looked at once, a hostile line costs no more than its length.
_JWT = re.compile(r"eyJ[\w-]{8,}+(\.[\w-]+\.[\w-]+)?")
# Gateway and internal tokens, credentials in query strings and headers; each has one of these signs before or in it.
_SIGNS = ("rst_", "token=", "bearer", "basic")
_CREDENTIAL = re.compile(
    r"rst_[A-Za-z]*_?[0-9a-f]{16,}"
    r"|(?<=token=)[^&\s\"'\\]+"
    r"|(?i:(?<=bearer )|(?<=basic ))[\w.~+/=-]{8,}"
)


def redact_credentials(text: str) -> str:
    """`text` with every credential of ours replaced by `[redacted]`."""
    text = _JWT.sub(lambda match: _MASK if match[1] else match[0], text)
    folded = text.casefold()
    if not any(sign in folded for sign in _SIGNS):  # as in nearly every line: to look closely takes far longer
        return text
    return _CREDENTIAL.sub(_MASK, text)


def configure_logging(level: str = "info", *, pretty: bool | None = None) -> None:
    """Configure the process's logging once, at start."""
    terminal = sys.stderr.isatty() if pretty is None else pretty
    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        _add_request_id,
    ]
    # Plain tracebacks on a terminal too: the rich ones print local variables, and so secrets.
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
    return structlog.get_logger(room=name)


def _add_request_id(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    if (current := request_id.get()) is not None:
        event["request_id"] = current
    return event


def _as_json(_logger: WrappedLogger, _method: str, event: EventDict) -> str:
    return _JSON.encode(event)


def _redact_line(_logger: WrappedLogger, _method: str, line: str) -> str:
    return redact_credentials(line)


class _Redacting(logging.Formatter):
    """For what libraries log: the message with its traceback."""

    def format(self, record: logging.LogRecord) -> str:
        return redact_credentials(super().format(record))
