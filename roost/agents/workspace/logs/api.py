"""An agent's logs: the last lines over HTTP, the live stream over a WebSocket at the same path."""

from collections.abc import AsyncIterator, Generator
from contextlib import contextmanager
from functools import lru_cache
from typing import Annotated

from fastapi import APIRouter, Depends, Query, WebSocket
from pydantic import Field

from roost.agents.workspace.logs.model import LogFilter, LogLevel, LogMessage
from roost.agents.workspace.logs.service import LogService
from roost.identity.authenticator import AgentCaller, AgentId, AgentVisit
from roost.web.schemas import ApiSchema, Moment, Uppercase
from roost.web.service_registry import provide_service
from roost.web.websocket import MessageSchema, serve_messages


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
    return LogMessageRecord(**vars(message)).model_dump_json(by_alias=True)


Service = Annotated[LogService, Depends(provide_service(LogService))]
router = APIRouter(prefix="/v0/agents/{agentId}", tags=["logs"])


async def parse_log_filter(
    level: Annotated[LogLevel | None, Uppercase, Query(description="Minimum level.")] = None,
    source: Annotated[
        str | None, Query(min_length=1, max_length=64, description="This source and its subsystems.")
    ] = None,
) -> LogFilter | None:
    return None if level is None and source is None else LogFilter(level or LogLevel.TRACE, source)


Filter = Annotated[LogFilter | None, Depends(parse_log_filter)]


@router.get("/logs")
async def tail_logs(_: AgentCaller, agent_id: AgentId, logs: Service, log_filter: Filter) -> LogTailRecord:
    """Return the last 100 lines as a single string."""
    return LogTailRecord(logs=await logs.tail(agent_id, log_filter))


@router.websocket("/logs")
async def follow(
    socket: Annotated[WebSocket, MessageSchema(LogMessageRecord)],
    visit: AgentVisit,
    agent_id: AgentId,
    logs: Service,
    log_filter: Filter,
) -> None:
    """Stream the last 100 messages and then live ones, until the token that opened the stream becomes invalid."""
    await serve_messages(socket, visit, _encoded_messages(logs, agent_id, log_filter))


@contextmanager
def _encoded_messages(logs: LogService, agent_id: str, log_filter: LogFilter | None) -> Generator[AsyncIterator[str]]:
    with logs.follow(agent_id) as messages:
        yield (
            encode_message(message) async for message in messages if log_filter is None or log_filter.matches(message)
        )
