"""The `manifest.json` of an archive, and the response of an import.

The manifest has what is needed to create the agent again, without the value of any secret.
Names are those of an agent template's manifest (version 1) where that has them.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Annotated, Literal, Self

from pydantic import ConfigDict, Field, ValidationError

from roost.agents.library.skills.model import ATTACHED_LIMIT
from roost.agents.library.templates.manifest import ManifestAgent, ManifestTask
from roost.agents.lifecycle.workflows.schemas import AgentRecord, CreateAgentResponse
from roost.agents.registry.errors import InvalidAgentName
from roost.agents.registry.model import MODEL_LIMIT, AgentProfile, validate_agent_name
from roost.agents.setup.channels.model import ALLOW_FROM_LIMIT, ID_LIMIT, Channel
from roost.agents.setup.secrets.model import NAME_LIMIT as SECRET_NAME_LIMIT
from roost.agents.setup.secrets.model import NAME_PATTERN, SecretKind
from roost.agents.setup.tasks.model import TASK_LIMIT
from roost.core.problem import InvalidInput, PayloadTooLarge, ResourceConflict
from roost.drivers.engine.abilities.channels import DmPolicy
from roost.web.schemas import ApiSchema, Text


class InvalidArchive(InvalidInput):
    """The bytes are no archive of an agent; the message gives the reason."""

    message = "Invalid archive"


class ArchiveTooLarge(PayloadTooLarge):
    message = "The archive is larger than an agent's disk"


class ArchiveHoldsSecret(ResourceConflict):
    """A value of a secret would leave with the file; the message names the place and the secret."""

    message = "The archive would hold the value of a secret"


_SECRETS_LIMIT = 1000
_ChannelName = Literal["telegram", "slack", "discord", "whatsapp"]
_STRICT = ConfigDict(strict=True)


class ManifestSecret(ApiSchema):
    """A secret or variable that the agent had; its value is never exported."""

    model_config = _STRICT

    name: Annotated[str, Field(max_length=SECRET_NAME_LIMIT, min_length=1, pattern=NAME_PATTERN)]
    type: Annotated[SecretKind, Field(strict=False)] = SecretKind.SECRET


class ManifestSkill(ApiSchema):
    """A skill that the agent had; the workspace has its files, the library of its tenant the skill itself."""

    model_config = _STRICT

    name: Annotated[Text, Field(max_length=64)]
    cid: Annotated[Text, Field(max_length=128)]


class ManifestChannel(ApiSchema):
    """Settings of a channel; its tokens are never exported."""

    model_config = _STRICT

    enabled: bool = True
    dm_policy: DmPolicy = "pairing"
    allow_from: Annotated[Sequence[Annotated[Text, Field(max_length=ID_LIMIT)]], Field(max_length=ALLOW_FROM_LIMIT)] = (
        Field(default=(), examples=[["4711"]])
    )

    @classmethod
    def from_channel(cls, channel: Channel) -> "ManifestChannel":
        return cls(enabled=channel.enabled, dm_policy=channel.dm_policy, allow_from=list(channel.allow_from))


class AgentManifest(ApiSchema):
    """Everything of an agent that is not a file."""

    model_config = _STRICT

    version: Literal[1] = 1
    engine: Annotated[Text, Field(max_length=32)]
    engine_version: Annotated[Text, Field(max_length=64)] | None = None
    agent: ManifestAgent
    model: Annotated[Text, Field(min_length=1, max_length=MODEL_LIMIT)] | None = None
    secrets: Annotated[Sequence[ManifestSecret], Field(max_length=_SECRETS_LIMIT)] = ()
    skills: Annotated[Sequence[ManifestSkill], Field(max_length=ATTACHED_LIMIT)] = ()
    tasks: Annotated[Sequence[ManifestTask], Field(max_length=TASK_LIMIT)] = ()
    channels: Mapping[_ChannelName, ManifestChannel] = Field(default_factory=dict[_ChannelName, ManifestChannel])

    def profile(self, name: str | None) -> AgentProfile:
        """Return the profile of the new agent, with another name if that is given. Raises InvalidAgentName."""
        agent = self.agent
        new_name = validate_agent_name(agent.name if name is None else name)
        return AgentProfile(new_name, agent.description, agent.vibe, agent.emoji, self.model)

    def encode(self) -> bytes:
        """Return the JSON: the same bytes for the same agent."""
        return json.dumps(
            self.model_dump(mode="json", by_alias=True, exclude_none=True), indent=2, ensure_ascii=False
        ).encode()


class ImportAgentResponse(CreateAgentResponse):
    """The new agent, and what the archived one had that the archive cannot hold.

    missingSecrets: names of secrets and variables. missingChannels: settings of channels by their names, without
    tokens. missingSkills: those that the library lacks, or that are found dangerous; their files are in the workspace.
    skippedTasks: names of tasks that the engine refuses, as one whose only time has passed.
    """

    missing_secrets: Sequence[str] = Field(examples=[["OPENAI_API_KEY"]])
    missing_channels: Mapping[_ChannelName, ManifestChannel] = Field(
        examples=[{"telegram": {"enabled": True, "dmPolicy": "pairing", "allowFrom": ["4711"]}}]
    )
    missing_skills: Sequence[ManifestSkill] = Field(examples=[[]])
    skipped_tasks: Sequence[str] = Field(examples=[[]])

    @classmethod
    def from_manifest(
        cls, agent: AgentRecord, manifest: AgentManifest, missing_skills: Collection[str], skipped_tasks: Sequence[str]
    ) -> Self:
        return cls(
            agent=agent,
            missing_secrets=[secret.name for secret in manifest.secrets],
            missing_channels=manifest.channels,
            missing_skills=[skill for skill in manifest.skills if skill.cid in missing_skills],
            skipped_tasks=skipped_tasks,
        )


def parse_manifest(data: bytes) -> AgentManifest:
    """Parse an untrusted manifest. Raises InvalidArchive, which names what is malformed."""
    try:
        manifest = AgentManifest.model_validate_json(data)
        validate_agent_name(manifest.agent.name)
    except ValidationError as error:
        fault = error.errors(include_input=False, include_url=False)[0]
        where = ".".join(str(part) for part in fault["loc"])
        reason = f"{where}: {fault['msg']}" if where else fault["msg"]
        raise InvalidArchive(f"Invalid archive: manifest.json: {reason}") from None
    except InvalidAgentName as problem:
        raise InvalidArchive(f"Invalid archive: manifest.json: agent.name: {problem.message}") from None
    return manifest


MANIFEST, WORKSPACE, STATE = "manifest.json", "workspace", "state"
MEDIA_TYPE = "application/vnd.ipld.car"
