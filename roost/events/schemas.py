"""API shapes of events."""

from typing import Any

from pydantic import Field
from pydantic.alias_generators import to_camel

from roost.core.actor import ActorKind
from roost.events.model import Event, EventType
from roost.web.schemas import ApiSchema, Moment


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
