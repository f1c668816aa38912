"""What a template's manifest asks for, and what of it an agent lacks. Pure."""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from roost.agents.library.skills.model import parse_cid_spellings
from roost.agents.library.templates.manifest import TemplateChannel, TemplateManifest, TemplateSecret, TemplateSkill
from roost.agents.setup.channels.model import ChannelRequest
from roost.agents.setup.secrets.model import Secret
from roost.core.sensitive import Sensitive
from roost.drivers.engine.abilities.channels import DmPolicy

_TOKEN_PREFIX = "env:"  # noqa: S105 - marks the name of a secret


class MissingKind(StrEnum):
    SECRET = "secret"  # noqa: S105 - a kind, no credential
    CHANNEL = "channel"
    SKILL = "skill"
    MODEL = "model"


@dataclass(frozen=True)
class TemplateInstance:
    """The template of an agent, as it was when the agent was made from it.

    is_waiting: the agent has not been started, because it lacked something. attempt: what it had at the last attempt to
    start it (see `describe_attempt`).
    """

    agent_id: str
    template_id: str
    slug: str
    name: str
    version: int
    commit_sha: str
    manifest: Mapping[str, Any]
    is_waiting: bool
    attempt: str | None
    created_at: datetime

    def parse_manifest(self) -> TemplateManifest:
        return TemplateManifest.from_document(self.manifest)


@dataclass(frozen=True)
class MissingItem:
    """Something that a manifest asks for and the agent lacks; a required one keeps the agent from starting."""

    kind: MissingKind
    name: str
    required: bool
    reason: str
    description: str | None = None
    guide_url: str | None = None
    guide_steps: Sequence[str] = ()


@dataclass(frozen=True)
class InstanceDetail:
    """An agent's template, its newest version unless it was archived, and what the agent lacks."""

    instance: TemplateInstance
    latest_version: int | None
    missing: Sequence[MissingItem]


@dataclass(frozen=True)
class AgentInputs:
    """What an agent has of what manifests ask for.

    secrets: names of attached secrets. channels: names of configured channels. skills: CIDs and slugs of attached
    skills. models: ids of offered models, None if they are not known.
    """

    secrets: Collection[str] = ()
    channels: Collection[str] = ()
    skills: Collection[str] = ()
    models: Collection[str] | None = None


def list_missing(manifest: TemplateManifest, inputs: AgentInputs) -> Sequence[MissingItem]:
    """List what the agent lacks: secrets, channels, skills, the model."""
    return [
        *_missing_secrets(manifest, inputs),
        *_missing_channels(manifest, inputs),
        *_missing_skills(manifest, inputs),
        *_missing_model(manifest, inputs),
    ]


def blocking_names(missing: Iterable[MissingItem]) -> Sequence[str]:
    """Return the names of the items without which the agent does not start."""
    return [item.name for item in missing if item.required]


def ready_channels(manifest: TemplateManifest, inputs: AgentInputs) -> Mapping[str, TemplateChannel]:
    """Return the channels that are not configured although all of their tokens are attached."""
    return {
        name: channel
        for name, channel in manifest.channels.items()
        if channel.enabled and name not in inputs.channels and channel_secrets(channel).issubset(inputs.secrets)
        if channel.bot_token is not None
    }


def channel_secrets(channel: TemplateChannel) -> frozenset[str]:
    """Return the names of the secrets that hold the tokens of a channel."""
    tokens = (channel.bot_token, channel.app_token)
    return frozenset(token.removeprefix(_TOKEN_PREFIX) for token in tokens if token is not None)


def channel_request(channel: TemplateChannel, values: Mapping[str, Sensitive[str]]) -> ChannelRequest:
    """Return the request that configures a channel with the values of its secrets.

    `closed` admits the listed users alone, as `open` with a list does; without a list every user needs approval.
    """
    bot, app = (
        None if token is None else values.get(token.removeprefix(_TOKEN_PREFIX))
        for token in (channel.bot_token, channel.app_token)
    )
    is_open = channel.dm_policy == "open" or (channel.dm_policy == "closed" and bool(channel.allow_from))
    policy: DmPolicy = "open" if is_open else "pairing"
    return ChannelRequest(bot, app, policy, channel.allow_from, enabled=True)


def describe_attempt(secrets: Iterable[Secret], channels: Iterable[str]) -> str:
    """Return text that changes whenever the agent gets another secret, value or channel."""
    return json.dumps([sorted([secret.id, secret.version] for secret in secrets), sorted(channels)])


def _missing_secrets(manifest: TemplateManifest, inputs: AgentInputs) -> Iterator[MissingItem]:
    """Yield secrets that are not attached; tokens of a configured channel are not needed any more."""
    channels = [channel for name, channel in manifest.channels.items() if name in inputs.channels]
    configured = frozenset[str]().union(*map(channel_secrets, channels))
    for secret in manifest.secrets:
        if secret.name not in inputs.secrets and secret.name not in configured:
            yield MissingItem(
                MissingKind.SECRET,
                secret.name,
                secret.required,
                "Attach a secret of this name",
                secret.description,
                secret.guide_url,
                secret.guide_steps,
            )


def _missing_channels(manifest: TemplateManifest, inputs: AgentInputs) -> Iterator[MissingItem]:
    declared = {secret.name: secret for secret in manifest.secrets}
    for name, channel in manifest.channels.items():
        if not channel.enabled or name in inputs.channels:
            continue
        tokens = channel_secrets(channel)
        for token in sorted(tokens - declared.keys() - set(inputs.secrets)):
            yield MissingItem(MissingKind.SECRET, token, True, "Attach a secret of this name", f"A token of {name}")
        if channel.bot_token is None:
            yield MissingItem(MissingKind.CHANNEL, name, False, "Configure the channel with its token")
        elif tokens.issubset(inputs.secrets):
            required = is_required_channel(channel, manifest.secrets)
            yield MissingItem(MissingKind.CHANNEL, name, required, "The channel is not configured with its token yet")


def is_required_channel(channel: TemplateChannel, secrets: Iterable[TemplateSecret]) -> bool:
    """Return whether an agent does not start without the channel: unless one of its tokens is optional."""
    optional = {secret.name for secret in secrets if not secret.required}
    return channel.enabled and channel.bot_token is not None and not channel_secrets(channel) & optional


def _has_skill(skills: Collection[str], reference: str) -> bool:
    """Return whether a CID or a slug is among those of skills; slugs are `@owner/name`, `owner/name` or a name."""
    cids = parse_cid_spellings(reference)
    slug = reference.removeprefix("@").lower()
    return any(one in cids or slug in {one.removeprefix("@"), one.rpartition("/")[2]} for one in skills)


def _missing_skills(manifest: TemplateManifest, inputs: AgentInputs) -> Iterator[MissingItem]:
    reason = "Install it from the hub, or add it to your library, and attach it"
    for skill in manifest.skills:
        if not _has_skill(inputs.skills, skill_reference(skill)):
            yield MissingItem(MissingKind.SKILL, skill.name or skill_reference(skill), False, reason)


def _missing_model(manifest: TemplateManifest, inputs: AgentInputs) -> Iterator[MissingItem]:
    if manifest.model and inputs.models is not None and manifest.model not in inputs.models:
        yield MissingItem(MissingKind.MODEL, manifest.model, False, "It is not offered; the default model is used")


def skill_reference(skill: TemplateSkill) -> str:
    return skill.cid or skill.clawhub_slug or ""
