"""An agent's logs: the last lines over HTTP, the live ones over a WebSocket at the same path."""

from collections.abc import AsyncIterator, Generator
from contextlib import contextmanager
from typing import Annotated

from fastapi import APIRouter, Depends, Query, WebSocket
from pydantic import BeforeValidator

from roost.agents.logs import schemas
from roost.agents.logs.model import LogFilter, LogLevel
from roost.agents.logs.service import LogService
from roost.identity.authenticator import AgentCaller, AgentId, AgentVisit
from roost.web.service_registry import provide_service
from roost.web.websocket import MessageSchema, serve_messages

Service = Annotated[LogService, Depends(provide_service(LogService))]
router = APIRouter(prefix="/v0/agents/{agentId}", tags=["logs"])


def _upper(value: object) -> object:
    return value.upper() if isinstance(value, str) else value


def wanted(
    level: Annotated[
        LogLevel | None, BeforeValidator(_upper), Query(description="This level and those above it.")
    ] = None,
    source: Annotated[
        str | None, Query(min_length=1, max_length=64, description="This source and those under it.")
    ] = None,
) -> LogFilter | None:
    return None if level is None and source is None else LogFilter(level or LogLevel.TRACE, source)


Wanted = Annotated[LogFilter | None, Depends(wanted)]


@router.get("/logs")
async def tail(_: AgentCaller, agent_id: AgentId, logs: Service, chosen: Wanted) -> schemas.LogTailRecord:
    """The last 100 lines, as a single string."""
    return schemas.LogTailRecord(logs=await logs.tail(agent_id, chosen))


@router.websocket("/logs")
async def follow(
    socket: Annotated[WebSocket, MessageSchema(schemas.LogMessageRecord)],
    visit: AgentVisit,
    agent_id: AgentId,
    logs: Service,
    chosen: Wanted,
) -> None:
    """The last 100 messages, then each as it is written, until the token that opened it counts no more."""
    await serve_messages(socket, visit, _texts(logs, agent_id, chosen))


@contextmanager
def _texts(logs: LogService, agent_id: str, chosen: LogFilter | None) -> Generator[AsyncIterator[str]]:
    with logs.follow(agent_id) as messages:
        yield (schemas.text(message) async for message in messages if chosen is None or chosen.admits(message))
