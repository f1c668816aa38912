"""Requests and responses of agents (contract, Agents); details that it leaves open follow existing clients."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Annotated, Literal, Self, get_args

from pydantic import ConfigDict, Field, StrictBool, model_validator

from roost.agents.library.instances.schemas import AgentTemplateRecord, MissingItemRecord
from roost.agents.library.skills.model import ATTACHED_LIMIT
from roost.agents.library.skills.schemas import AttachedSkillRecord
from roost.agents.library.templates.manifest import SLUG_LIMIT
from roost.agents.lifecycle.workflows.model import CreateAgent
from roost.agents.network.routes.schemas import RouteRecord
from roost.agents.registry.model import (
    DESCRIPTION_LIMIT,
    EMOJI_LIMIT,
    MODEL_LIMIT,
    NAME_LIMIT,
    VIBE_LIMIT,
    Agent,
    AgentProfile,
    validate_agent_name,
)
from roost.agents.registry.schemas import AgentFields, FaultRecord
from roost.agents.setup.channels.schemas import ChannelConfiguration
from roost.agents.setup.secrets.schemas import AgentSecretRecord
from roost.agents.workspace.scripts.schemas import ScriptListRecord
from roost.agents.workspace.snapshots.schemas import SnapshotRecord
from roost.core.sensitive import Sensitive
from roost.drivers.engine.abilities.channels import ChannelAbility, PairingCodeAbility
from roost.drivers.engine.contract import Engine
from roost.web.schemas import ApiSchema, Moment, Text

_Id = Annotated[Text, Field(min_length=1, max_length=256)]
Ability = Literal["channels", "chat", "configuration", "devices", "skills", "tasks"]
ABILITIES: Sequence[Ability] = get_args(Ability)
"""Attributes of `Engine`, None where the engine lacks the ability."""


class CreateAgentRequest(ApiSchema):
    """Request to create an agent; without a name it gets that of its template."""

    name: Annotated[str, Field(json_schema_extra={"minLength": 1, "maxLength": NAME_LIMIT})] | None = None
    description: Annotated[Text, Field(max_length=DESCRIPTION_LIMIT)] | None = None
    vibe: Annotated[Text, Field(max_length=VIBE_LIMIT)] | None = None
    emoji: Annotated[Text, Field(max_length=EMOJI_LIMIT)] | None = None
    engine: Annotated[Text, Field(max_length=32)] | None = None
    model: Annotated[Text, Field(min_length=1, max_length=MODEL_LIMIT, examples=["openai/gpt-5"])] | None = None
    skill_cids: Annotated[Sequence[_Id], Field(max_length=ATTACHED_LIMIT, examples=[[]])] = ()
    acknowledge: StrictBool = False
    """Whether skills that are found dangerous are attached all the same."""
    secret_ids: Annotated[Sequence[_Id], Field(max_length=1000)] = ()
    snapshot_cid: Annotated[Text | None, Field(examples=[None])] = None
    template_id: Annotated[Text, Field(max_length=SLUG_LIMIT)] | None = None
    attach_secrets: StrictBool = False
    channels: Mapping[str, ChannelConfiguration] = Field(
        default_factory=dict[str, ChannelConfiguration],
        examples=[{"telegram": {"botToken": "123456789:AAExampleTokenOfATelegramBot0123456", "dmPolicy": "pairing"}}],
    )

    @model_validator(mode="after")
    def _check_origin(self) -> Self:
        if self.template_id is None and self.name is None:
            raise ValueError("name: Field required")
        if self.template_id is not None and self.snapshot_cid is not None:
            raise ValueError("templateId and snapshotCid exclude each other")
        return self

    def to_create_agent(self) -> CreateAgent:
        """Return the validated request. Raises InvalidAgentName."""
        name = "" if self.name is None else validate_agent_name(self.name)
        return CreateAgent(
            AgentProfile(name, self.description, self.vibe, self.emoji, self.model),
            self.engine,
            self.secret_ids,
            self.snapshot_cid,
            {name: channel.to_request() for name, channel in self.channels.items()},
            skill_cids=self.skill_cids,
            acknowledges_skills=self.acknowledge,
            template=self.template_id,
            attach_secrets=self.attach_secrets,
        )


class RestartAgentRequest(ApiSchema):
    """Request to restart; the contract does not name the version's field, so two names are accepted."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"version": "2026.9.6"}]})

    version: Annotated[Text, Field(max_length=64)] | None = None
    agent_version: Annotated[Text, Field(max_length=64)] | None = None

    @property
    def requested_version(self) -> str | None:
        return self.agent_version if self.version is None else self.version


class UpdateAgentRequest(ApiSchema):
    """`tag` is a version, or `latest`."""

    tag: Annotated[Text, Field(max_length=64)] | None = None


class UpdateAgentResponse(ApiSchema):
    success: bool
    previous_version: str
    new_version: str
    output: str


class AgentRecord(AgentFields):
    """Record of an agent; lists have neither `gatewayToken`, which few callers may read, nor `lifecycleJson`."""

    status_reason: str | None
    last_used_at: Moment | None = Field(default=None, description="Null if it has never been used.")
    gateway_token: str | None = None
    lifecycle_json: str | None = None
    """The scripts as JSON text, for clients of the reference service."""


class AgentList(ApiSchema):
    agents: Sequence[AgentRecord]
    agent_limit: int
    time_credits: None = None


class AgentMemoryRecord(ApiSchema):
    agent_id: str
    memory_bytes: int = Field(examples=[104857600])


class AgentMemoryList(ApiSchema):
    """Memory that containers use, without reclaimable cache; agents that do not run on this host are absent."""

    agents: Sequence[AgentMemoryRecord]


class CreateAgentResponse(ApiSchema):
    """Response to create; an agent that lacks a required item of `missing` starts once it has it."""

    success: bool = True
    agent: AgentRecord
    template: AgentTemplateRecord | None = None
    missing: Sequence[MissingItemRecord] = ()


class StartFailureResponse(ApiSchema):
    """Response 500 after create (contract: "response carries the agent body")."""

    error: str
    agent: AgentRecord


class AgentDetail(ApiSchema):
    agent: AgentRecord
    process_status: str
    process_id: int | None = None
    lifecycle: ScriptListRecord
    skills: Sequence[AttachedSkillRecord]
    secrets: Sequence[AgentSecretRecord] = ()
    snapshots: Sequence[SnapshotRecord]
    port_forwarding: Sequence[RouteRecord] = ()
    template: AgentTemplateRecord | None = None
    missing: Sequence[MissingItemRecord] = ()
    faults: Sequence[FaultRecord] = ()
    """Background work that keeps failing, the oldest first."""


class ActionResponse(ApiSchema):
    success: bool = True
    message: str


class RestartAgentResponse(ActionResponse):
    previous_process_id: int | None = None


class MoveAgentRequest(ApiSchema):
    to: str = Field(
        max_length=255,
        description="The runtime, or id or name of the server, to move the agent to.",
        examples=["bwrap"],
    )


class MoveAgentResponse(ApiSchema):
    """Result of a move; without success the agent runs in `runtime` as before, and `output` says why."""

    success: bool
    runtime: str
    output: str


class ChannelAbilityRecord(ApiSchema):
    """What an engine can do on a channel.

    `pairingCodes`: strangers get codes, which the owner approves. `reportsMessages`: `lastMessageAt` has a value.
    """

    pairing_codes: bool
    reports_messages: bool


class EngineRecord(ApiSchema):
    """An engine; `abilities` are what agents of it can do beside answering at their address."""

    id: str = Field(examples=["openclaw"])
    label: str = Field(examples=["OpenClaw"])
    abilities: Sequence[Ability]
    channels: Mapping[str, ChannelAbilityRecord]


class EngineList(ApiSchema):
    engines: Sequence[EngineRecord]


class GatewayTokenRecord(ApiSchema):
    """The token under two names: `token` as in the platform's responses, `gatewayToken` as in the agent record."""

    token: str
    gateway_token: str


def agent_record(
    agent: Agent,
    url: str,
    token: Sensitive[str] | None = None,
    lifecycle: ScriptListRecord | None = None,
    last_used_at: datetime | None = None,
) -> AgentRecord:
    return AgentRecord.from_agent(
        agent,
        url,
        status_reason=agent.reason,
        last_used_at=last_used_at,
        gateway_token=token.reveal() if token else None,
        lifecycle_json=lifecycle.model_dump_json(by_alias=True) if lifecycle else None,
    )


def encode_agent_list(agents: Iterable[tuple[Agent, str]], last_uses: Mapping[str, datetime], agent_limit: int) -> str:
    """Return the JSON of an AgentList of agents and their URLs."""
    records = ",".join(_encode_record(agent, url, last_uses.get(agent.id)) for agent, url in agents)
    empty = AgentList(agents=(), agent_limit=agent_limit).model_dump_json(by_alias=True)
    return empty.replace("[]", f"[{records}]", 1)


@lru_cache(maxsize=16384)
def _encode_record(agent: Agent, url: str, last_used_at: datetime | None) -> str:
    """Return the JSON of a record; it is kept, because long lists are read often and change little."""
    return agent_record(agent, url, last_used_at=last_used_at).model_dump_json(by_alias=True)


def token_record(token: Sensitive[str]) -> GatewayTokenRecord:
    return GatewayTokenRecord(token=token.reveal(), gateway_token=token.reveal())


def engine_record(engine: Engine) -> EngineRecord:
    return EngineRecord(
        id=engine.id,
        label=engine.label,
        abilities=[name for name in ABILITIES if getattr(engine, name) is not None],
        channels={} if engine.channels is None else _channel_abilities(engine.channels, engine.installed()[0]),
    )


def _channel_abilities(ability: ChannelAbility, version: str) -> Mapping[str, ChannelAbilityRecord]:
    coded = ability.code_channels if isinstance(ability, PairingCodeAbility) else ()
    return {
        name: ChannelAbilityRecord(pairing_codes=name in coded, reports_messages=ability.reports_messages)
        for name in sorted(ability.supported(version))
    }
