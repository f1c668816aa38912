"""Who makes the changes of a task: authentication sets the actor of a request, the worker its own (decision 0042)."""

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from enum import StrEnum


class ActorKind(StrEnum):
    KEY = "key"  # a program or person with an API key
    SESSION = "session"  # a person in a browser that is signed in by an API key
    TOKEN = "token"  # noqa: S105 - the holder of an agent's gateway token
    AGENT = "agent"  # an agent itself
    SIGNED_URL = "signed_url"  # the holder of a signed URL
    SERVER = "server"  # the server by itself


@dataclass(frozen=True)
class Actor:
    """`id` is that of the key or the agent, `name` that of the key."""

    kind: ActorKind
    tenant_id: str | None = None
    id: str | None = None
    name: str | None = None


SERVER = Actor(ActorKind.SERVER)
current_actor: ContextVar[Actor] = ContextVar("actor", default=SERVER)


@contextmanager
def acting_as(actor: Actor) -> Generator[None]:
    """Let the block, and tasks that it creates, make their changes as an actor."""
    token = current_actor.set(actor)
    try:
        yield
    finally:
        current_actor.reset(token)
