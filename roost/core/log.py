"""Structured logs on standard error: one JSON object a line, or readable lines on a terminal.

The last step before printing masks whatever looks like one of our credentials, whoever put it there.
"""

import logging
import re
import sys
from contextvars import ContextVar
from typing import Any

import structlog
from structlog.typing import EventDict, WrappedLogger

request_id: ContextVar[str | None] = ContextVar("request_id", default=None)

# Service JWTs, gateway and internal tokens, credentials in query strings and headers.
_CREDENTIAL = re.compile(
    r"eyJ[\w-]{8,}\.[\w-]+\.[\w-]+"
    r"|\brst_[A-Za-z]*_?[0-9a-f]{16,}"
    r"|(?<=token=)[^&\s\"']+"
    r"|(?i:(?<=bearer )|(?<=basic ))[\w.~+/=-]{8,}"
)


def redact(text: str) -> str:
    """`text` with every credential of ours replaced by `[redacted]`."""
    return _CREDENTIAL.sub("[redacted]", text)


def setup(level: str = "info", *, pretty: bool | None = None) -> None:
    """Configure the process's logging once, at start."""
    terminal = sys.stderr.isatty() if pretty is None else pretty
    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        _add_request_id,
    ]
    last: list[Any] = [structlog.dev.ConsoleRenderer()] if terminal else [structlog.processors.JSONRenderer()]
    structlog.configure(
        processors=[*shared, structlog.processors.format_exc_info, _redact_event, *last],
        wrapper_class=structlog.make_filtering_bound_logger(getattr(logging, level.upper())),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr, format="%(levelname)s %(name)s %(message)s")
    for handler in logging.getLogger().handlers:
        handler.addFilter(_redact_record)


def get(name: str) -> structlog.stdlib.BoundLogger:
    return structlog.get_logger(logger=name)


def _add_request_id(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    if (current := request_id.get()) is not None:
        event["request_id"] = current
    return event


def _redact_event(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    return {key: redact(value) if isinstance(value, str) else value for key, value in event.items()}


def _redact_record(record: logging.LogRecord) -> bool:
    record.msg, record.args = redact(record.getMessage()), None
    return True
