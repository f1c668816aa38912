"""Shapes of the logs (contract: last 100 lines as a single string; Log stream message)."""

from functools import lru_cache

from roost.agents.logs.model import LogLevel, LogMessage
from roost.web.schemas import ApiSchema, Moment


class LogTailRecord(ApiSchema):
    logs: str


class LogMessageRecord(ApiSchema):
    timestamp: Moment
    level: LogLevel
    source: str
    message: str


@lru_cache(maxsize=64)
def text(message: LogMessage) -> str:
    """A message as it is sent: made once for all who follow."""
    shape = LogMessageRecord(
        timestamp=message.timestamp, level=message.level, source=message.source, message=message.message
    )
    return shape.model_dump_json(by_alias=True)
