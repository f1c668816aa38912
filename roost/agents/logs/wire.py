"""Shapes of the logs (contract: last 100 lines as a single string; Log stream message)."""

from functools import lru_cache

from roost.agents.logs.model import Level, Message
from roost.web.wire import Moment, Wire


class LogText(Wire):
    logs: str


class LogMessage(Wire):
    timestamp: Moment
    level: Level
    source: str
    message: str


@lru_cache(maxsize=64)
def text(message: Message) -> str:
    """A message as it is sent: made once for all who follow."""
    shape = LogMessage(timestamp=message.timestamp, level=message.level, source=message.source, message=message.message)
    return shape.model_dump_json(by_alias=True)
