"""Shapes of the agents' table of the contract; what it leaves open follows the reference service's clients."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import Field

from roost.agents.channels.shape import ChannelConfiguration
from roost.agents.lifecycle.model import Order, Updated
from roost.agents.roster.model import (
    DESCRIPTION_LIMIT,
    EMOJI_LIMIT,
    VIBE_LIMIT,
    Agent,
    Profile,
    checked_name,
)
from roost.agents.roster.shape import AgentShape
from roost.agents.scripts.shape import ScriptRecords
from roost.agents.secrets.shape import AgentSecret
from roost.core.sensitive import Sensitive
from roost.web.wire import Text, Wire

_Id = Annotated[Text, Field(min_length=1, max_length=256)]


class CreateAgent(Wire):
    name: str = ""
    description: Annotated[Text, Field(max_length=DESCRIPTION_LIMIT)] | None = None
    vibe: Annotated[Text, Field(max_length=VIBE_LIMIT)] | None = None
    emoji: Annotated[Text, Field(max_length=EMOJI_LIMIT)] | None = None
    engine: Annotated[Text, Field(max_length=32)] | None = None
    skill_cids: Annotated[Sequence[_Id], Field(max_length=1000)] = ()
    secret_ids: Annotated[Sequence[_Id], Field(max_length=1000)] = ()
    channels: Mapping[str, ChannelConfiguration] = Field(default_factory=dict[str, ChannelConfiguration])

    def order(self) -> Order:
        """Raises InvalidName."""
        profile = Profile(checked_name(self.name), self.description, self.vibe, self.emoji)
        channels = {name: channel.order() for name, channel in self.channels.items()}
        return Order(profile, self.engine, self.skill_cids, self.secret_ids, channels)


class RestartAgent(Wire):
    """The contract does not name the version's field: the record's own name and the short one are taken."""

    version: Annotated[Text, Field(max_length=64)] | None = None
    agent_version: Annotated[Text, Field(max_length=64)] | None = None

    @property
    def wanted(self) -> str | None:
        return self.version or self.agent_version


class UpdateAgent(Wire):
    """`tag` is a version, or `latest`."""

    tag: Annotated[Text, Field(max_length=64)] | None = None


class AgentUpdated(Wire):
    success: bool
    previous_version: str
    new_version: str
    output: str


class AgentRecord(AgentShape):
    """`gatewayToken` is there only for callers who may read it anyway, and never in lists."""

    status_reason: str | None
    gateway_token: str | None = None
    lifecycle_json: str | None = None
    """The scripts as a text, as clients of the reference service look for it; never in lists."""


class AgentList(Wire):
    agents: Sequence[AgentRecord]
    agent_limit: int
    time_credits: None = None


class AgentCreated(Wire):
    success: bool = True
    agent: AgentRecord


class StartFailure(Wire):
    """500 after create (contract: "response carries the agent body")."""

    error: str
    agent: AgentRecord


class AgentDetail(Wire):
    agent: AgentRecord
    process_status: str
    process_id: int | None = None
    lifecycle: ScriptRecords
    skills: Sequence[Any] = ()
    secrets: Sequence[AgentSecret] = ()
    snapshots: Sequence[Any] = ()
    port_forwarding: Sequence[Any] = ()


class Done(Wire):
    success: bool = True
    message: str


class Restarted(Done):
    previous_process_id: int | None = None


class EngineRecord(Wire):
    id: str
    label: str


class EngineList(Wire):
    engines: Sequence[EngineRecord]


class GatewayToken(Wire):
    """The same value twice: `token` as in the platform's answers, `gatewayToken` as in the agent record."""

    token: str
    gateway_token: str


def record(
    agent: Agent, url: str, token: Sensitive[str] | None = None, lifecycle: ScriptRecords | None = None
) -> AgentRecord:
    return AgentRecord.of(
        agent,
        url,
        status_reason=agent.reason,
        gateway_token=token.reveal() if token else None,
        lifecycle_json=lifecycle.model_dump_json(by_alias=True) if lifecycle else None,
    )


def token(value: Sensitive[str]) -> GatewayToken:
    return GatewayToken(token=value.reveal(), gateway_token=value.reveal())


def updated(update: Updated) -> AgentUpdated:
    return AgentUpdated(**vars(update))
