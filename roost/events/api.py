"""Event streams of a tenant and of one agent: server-sent events, or a WebSocket at the same path."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from dataclasses import dataclass, replace
from typing import Annotated

from fastapi import APIRouter, Depends, Header, Query, Response, WebSocket

from roost.events import schemas
from roost.events.model import Event, EventFilter, parse_cursor, parse_types
from roost.events.server_sent_events import encode_stream
from roost.events.service import EventService
from roost.identity.authenticator import AgentId, AgentVisit, TenantVisit
from roost.identity.caller import Caller
from roost.web.duplex_response import DuplexResponse
from roost.web.service_registry import provide_service
from roost.web.websocket import MessageSchema, serve_texts

Service = Annotated[EventService, Depends(provide_service(EventService))]
Socket = Annotated[WebSocket, MessageSchema(schemas.EventRecord)]
_EVENTS = {"text/event-stream": {"schema": {"description": "Server-sent events, each with an `EventRecord`."}}}
_HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
router = APIRouter(tags=["events"])


@dataclass(frozen=True)
class StreamRequest:
    """What a client asks of a stream."""

    events: EventService
    wanted: EventFilter
    after: int | None

    @asynccontextmanager
    async def open(self, visit: AbstractAsyncContextManager[Caller]) -> AsyncGenerator[AsyncIterator[Event]]:
        async with visit as caller:
            with self.events.follow(caller, self.wanted, self.after) as events:
                async with aclosing(events):
                    yield events

    @asynccontextmanager
    async def open_texts(self, visit: AbstractAsyncContextManager[Caller]) -> AsyncGenerator[AsyncIterator[str]]:
        async with self.open(visit) as events:
            yield (schemas.encode_event(event) async for event in events)

    def of_agent(self, agent_id: str) -> "StreamRequest":
        return replace(self, wanted=replace(self.wanted, agent_id=agent_id))


async def parse_stream_request(
    events: Service,
    types: Annotated[
        str | None, Query(description="Comma-separated types (`agent.changed`) or kinds (`agent`); all by default.")
    ] = None,
    agent_id: Annotated[str | None, Query(alias="agentId", description="Only events of this agent.")] = None,
    after: Annotated[str | None, Query(description="Begin after the event with this id, or with the `oldest`.")] = None,
    last_event_id: Annotated[str | None, Header(description="As `after`, sent by browsers; it counts first.")] = None,
) -> StreamRequest:
    return StreamRequest(events, EventFilter(parse_types(types), agent_id), parse_cursor(last_event_id or after))


Request = Annotated[StreamRequest, Depends(parse_stream_request)]


@router.get("/v0/events", response_class=Response, responses={200: {"content": _EVENTS}})
async def stream_events(visit: TenantVisit, request: Request) -> Response:
    """Stream the changes of all resources, as server-sent events, until the credential becomes invalid."""
    return DuplexResponse(lambda _: encode_stream(request.open(visit)), "text/event-stream", _HEADERS)


@router.websocket("/v0/events")
async def stream_event_messages(socket: Socket, visit: TenantVisit, request: Request) -> None:
    """Stream the changes of all resources until the credential becomes invalid."""
    await serve_texts(socket, request.open_texts(visit))


@router.get("/v0/agents/{agentId}/events", response_class=Response, responses={200: {"content": _EVENTS}})
async def stream_agent_events(visit: AgentVisit, agent_id: AgentId, request: Request) -> Response:
    """Stream the changes of an agent and what belongs to it, as server-sent events."""
    opened = request.of_agent(agent_id).open(visit)
    return DuplexResponse(lambda _: encode_stream(opened), "text/event-stream", _HEADERS)


@router.websocket("/v0/agents/{agentId}/events")
async def stream_agent_event_messages(socket: Socket, visit: AgentVisit, agent_id: AgentId, request: Request) -> None:
    """Stream the changes of an agent and what belongs to it."""
    await serve_texts(socket, request.of_agent(agent_id).open_texts(visit))
