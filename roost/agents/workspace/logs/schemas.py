"""API shapes of logs (contract: last 100 lines as a single string; Log stream message)."""

from functools import lru_cache

from pydantic import Field

from roost.agents.workspace.logs.model import LogLevel, LogMessage
from roost.web.schemas import ApiSchema, Moment


class LogTailRecord(ApiSchema):
    logs: str


class LogMessageRecord(ApiSchema):
    timestamp: Moment
    level: LogLevel = Field(examples=["INFO"])
    source: str
    message: str = Field(examples=["gateway ready"])


@lru_cache(maxsize=64)
def encode_message(message: LogMessage) -> str:
    """Encode a message, once for all readers."""
    record = LogMessageRecord(
        timestamp=message.timestamp, level=message.level, source=message.source, message=message.message
    )
    return record.model_dump_json(by_alias=True)
