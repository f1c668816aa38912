"""Event streams of a tenant and of one agent: server-sent events, or a WebSocket at the same path."""

import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from dataclasses import dataclass, replace
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header, Query, Response, WebSocket
from pydantic import Field
from pydantic.alias_generators import to_camel

from roost.core.actor import ActorKind
from roost.core.problem import Problem
from roost.events.model import Event, EventFilter, EventType, parse_cursor, parse_types
from roost.events.service import EventService
from roost.identity.authenticator import AgentId, AgentVisit, TenantVisit
from roost.identity.caller import Caller
from roost.web.responses import describe_events, stream_response
from roost.web.schemas import ApiSchema, Moment
from roost.web.service_registry import provide_service
from roost.web.websocket import MessageSchema, serve_texts


class EventSubjectRecord(ApiSchema):
    kind: str = Field(examples=["agent"])
    id: str


class EventActorRecord(ApiSchema):
    """Who changed something: `id` of the key or the agent, `name` of the key; a gateway token sees neither."""

    kind: ActorKind
    id: str | None
    name: str | None


class EventRecord(ApiSchema):
    """An event. A `heartbeat` and a `reset` have no subject; their id is the position of the stream."""

    id: str = Field(examples=["42"], description="The cursor: streams resume after it.")
    type: EventType = Field(examples=["agent.changed"])
    at: Moment
    subject: EventSubjectRecord | None
    agent_id: str | None
    actor: EventActorRecord | None = None
    data: dict[str, Any]

    @classmethod
    def from_event(cls, event: Event) -> "EventRecord":
        return cls(
            id=str(event.number),
            type=event.type,
            at=event.at,
            subject=EventSubjectRecord(kind=event.subject_kind, id=event.subject_id) if event.subject_kind else None,
            agent_id=event.agent_id,
            actor=EventActorRecord.model_validate(event.actor, from_attributes=True) if event.actor else None,
            data={to_camel(key): value for key, value in event.data.items()},
        )


def encode_event(event: Event) -> str:
    return EventRecord.from_event(event).model_dump_json(by_alias=True)


async def encode_stream(opened: AbstractAsyncContextManager[AsyncIterator[Event]]) -> AsyncGenerator[bytes]:
    """Yield events until `opened` ends; an event `error` tells why. Raises a Problem before the first."""
    is_open = False
    try:
        async with opened as events:
            async for event in events:
                is_open = True
                yield format_event(event)
    except Problem as problem:
        if not is_open:
            raise
        yield f"event: error\ndata: {json.dumps({'error': problem.message})}\n\n".encode()


def format_event(event: Event) -> bytes:
    """Format an event. A heartbeat has no data: clients only note its id, from which they resume."""
    if event.type is EventType.HEARTBEAT:
        return f"id: {event.number}\n: heartbeat\n\n".encode()
    return f"id: {event.number}\nevent: {event.type}\ndata: {encode_event(event)}\n\n".encode()


Service = Annotated[EventService, Depends(provide_service(EventService))]
Socket = Annotated[WebSocket, MessageSchema(EventRecord)]
_EVENTS = describe_events("Server-sent events, each with an `EventRecord`.")
router = APIRouter(tags=["events"])


@dataclass(frozen=True)
class StreamRequest:
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
            yield (encode_event(event) async for event in events)

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
    return stream_response(encode_stream(request.open(visit)))


@router.websocket("/v0/events")
async def stream_event_messages(socket: Socket, visit: TenantVisit, request: Request) -> None:
    """Stream the changes of all resources until the credential becomes invalid."""
    await serve_texts(socket, request.open_texts(visit))


@router.get("/v0/agents/{agentId}/events", response_class=Response, responses={200: {"content": _EVENTS}})
async def stream_agent_events(visit: AgentVisit, agent_id: AgentId, request: Request) -> Response:
    """Stream the changes of an agent and what belongs to it, as server-sent events."""
    return stream_response(encode_stream(request.of_agent(agent_id).open(visit)))


@router.websocket("/v0/agents/{agentId}/events")
async def stream_agent_event_messages(socket: Socket, visit: AgentVisit, agent_id: AgentId, request: Request) -> None:
    """Stream the changes of an agent and what belongs to it."""
    await serve_texts(socket, request.of_agent(agent_id).open_texts(visit))
