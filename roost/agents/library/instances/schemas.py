"""Records of an agent's template and of what the agent lacks."""

from collections.abc import Sequence
from typing import Self

from roost.agents.library.instances.model import MissingItem, MissingKind, TemplateInstance
from roost.web.schemas import ApiSchema


class AgentTemplateRecord(ApiSchema):
    """The template and its version that an agent was made from; `latestVersion` is null once it is archived."""

    template_id: str
    slug: str
    name: str
    version: int
    git_commit_sha: str
    latest_version: int | None
    update_available: bool

    @classmethod
    def from_instance(cls, instance: TemplateInstance, latest: int | None) -> Self:
        is_old = latest is not None and latest > instance.version
        return cls(**vars(instance), git_commit_sha=instance.commit_sha, latest_version=latest, update_available=is_old)


class MissingItemRecord(ApiSchema):
    """Something that the template asks for and the agent lacks; the agent does not start without required ones."""

    type: MissingKind
    name: str
    required: bool
    reason: str
    description: str | None
    guide_url: str | None
    guide_steps: Sequence[str]

    @classmethod
    def from_item(cls, item: MissingItem) -> Self:
        return cls(**vars(item), type=item.kind)
