"""API shapes of the hub; details that the contract leaves open follow the reference service's clients."""

from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import Field, StrictBool

from roost.agents.library.hub import model
from roost.agents.library.hub.maintenance import is_bundled
from roost.agents.library.hub.model import HubFilter, HubListing, HubSort, HubVersion, Publication
from roost.agents.library.hub.registries import RegistryDetail, RegistrySkill
from roost.agents.library.skills.schemas import EnvVarRecord, VerdictRecord, WantsRecord
from roost.agents.library.skills.skill_wants import SkillWants
from roost.agents.library.skills.verdict import VerdictLevel
from roost.web.schemas import ApiSchema, Moment, Text

_EXAMPLE_CID = "bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi"
_Label = Annotated[Text, Field(max_length=model.TAG_LENGTH)]
_Url = Annotated[Text, Field(max_length=500)]
_Version = Annotated[Text, Field(max_length=128, examples=["1.0.0"])]


class HubQuery(ApiSchema):
    q: Annotated[Text | None, Field(max_length=model.QUERY_LIMIT, description="Words that occur in the texts.")] = None
    category: Annotated[Text | None, Field(max_length=100)] = None
    sort: HubSort = HubSort.POPULAR
    featured: bool | None = None
    cursor: Annotated[Text | None, Field(max_length=500)] = None
    limit: Annotated[int, Field(ge=1, le=model.PAGE_LIMIT)] = model.PAGE_DEFAULT

    def filter(self) -> HubFilter:
        """Return the filter. Raises InvalidHubRequest."""
        terms = model.parse_terms(self.q or "")
        return HubFilter(terms, self.category or None, self.featured, sort=self.sort)


class InstallHubSkillRequest(ApiSchema):
    version: Annotated[_Version | None, Field(description="A number or a CID; by default the newest.")] = None
    acknowledge: Annotated[StrictBool, Field(description="Install a skill whose verdict is `dangerous`.")] = False


class PublishSkillRequest(ApiSchema):
    """What is left out keeps its value."""

    version: Annotated[_Version | None, Field(description="A number or a CID; by default the newest.")] = None
    changelog: Annotated[Text, Field(max_length=10_000)] = ""
    category: _Label | None = None
    tags: Annotated[Sequence[_Label] | None, Field(max_length=model.TAGS_LIMIT)] = None
    author_name: Annotated[Text | None, Field(max_length=100)] = None
    author_url: _Url | None = None
    author_logo_url: _Url | None = None
    featured: StrictBool | None = None
    acknowledgement: Annotated[
        Text | None, Field(max_length=1_000, description="Why you publish it if its verdict is `dangerous`.")
    ] = None

    def publication(self) -> Publication:
        return Publication(**vars(self))


class HubEnvVarRecord(EnvVarRecord):
    """A variable that the skill reads; the guide is for its value."""

    guide_url: str | None = None
    guide_steps: Sequence[str] = ()


class HubSkillRecord(ApiSchema):
    """A published skill. source: null for this server's hub, else the address of the registry.

    bundled: it comes with Roost. acknowledgement: why its publisher published it although it is dangerous.
    """

    hub_skill_id: str
    skill_cid: Annotated[str | None, Field(examples=[_EXAMPLE_CID])]
    version: str | None
    name: str
    slug: Annotated[str, Field(examples=["@roost/json-tools"])]
    description: str
    author_name: str
    bundled: bool = False
    author_url: str | None = None
    author_logo_url: str | None = None
    category: str
    tags: Sequence[str] = ()
    env_vars: Sequence[HubEnvVarRecord] = ()
    wants: WantsRecord | None = None
    license: str | None = None
    verdict: VerdictRecord | None
    acknowledgement: str | None = None
    featured: bool = False
    install_count: int = 0
    source: str | None = None
    created_at: Moment
    updated_at: Moment


class HubVersionRecord(ApiSchema):
    version: str
    skill_cid: str
    changelog: str
    verdict: VerdictLevel
    size: int
    created_at: Moment


class HubSkillDetailRecord(HubSkillRecord):
    """long_description: the text of `SKILL.md` after its front matter, as it was written."""

    long_description: str
    versions: Sequence[HubVersionRecord]


class HubSkillList(ApiSchema):
    skills: Sequence[HubSkillRecord]
    next_cursor: str | None = None
    categories: Sequence[str]


class HubSkillDetail(ApiSchema):
    """`own`: the caller's tenant published it, and can withdraw it."""

    skill: HubSkillDetailRecord
    own: bool = False


class PublishSkillResponse(ApiSchema):
    success: bool = True
    skill: HubSkillRecord


class UnpublishSkillResponse(ApiSchema):
    success: bool = True
    message: str


def hub_skill(found: HubListing) -> HubSkillRecord:
    return HubSkillRecord(**_fields(found))


def registry_skill(found: RegistrySkill) -> HubSkillRecord:
    """Return the record of a skill of another server, whose files are not checked yet."""
    return HubSkillRecord(**_registry_fields(found))


def registry_skill_detail(found: RegistryDetail) -> HubSkillDetail:
    """Return the record of a skill of another server, whose files were checked here."""
    fields: dict[str, Any] = {
        **_registry_fields(found.skill),
        **_wants_fields(found.file.wants),
        "description": found.file.description,
        "license": found.file.license,
        "verdict": VerdictRecord.from_verdict(found.verdict),
    }
    return HubSkillDetail(skill=HubSkillDetailRecord(**fields, long_description=found.body, versions=[]))


def hub_skill_detail(found: HubListing, versions: Sequence[HubVersion], tenant_id: str) -> HubSkillDetail:
    record = HubSkillDetailRecord(
        **_fields(found), long_description=found.version.body, versions=[_version(one) for one in versions]
    )
    return HubSkillDetail(own=found.skill.tenant_id == tenant_id, skill=record)


def _version(version: HubVersion) -> HubVersionRecord:
    fields: dict[str, Any] = {**vars(version), "skill_cid": version.cid, "verdict": version.verdict.level}
    return HubVersionRecord(**fields)


def _fields(found: HubListing) -> dict[str, Any]:
    skill, version = found.skill, found.version
    return {
        **vars(skill),
        "bundled": is_bundled(found),
        "slug": skill.slug,
        "hub_skill_id": skill.id,
        "skill_cid": version.cid,
        "version": version.version,
        "description": version.description,
        **_wants_fields(version.wants),
        "license": version.license,
        "verdict": VerdictRecord.from_verdict(version.verdict),
        "acknowledgement": version.acknowledgement,
    }


def _registry_fields(found: RegistrySkill) -> dict[str, Any]:
    return {
        **vars(found),
        "hub_skill_id": found.id,
        "skill_cid": None,
        "author_name": found.owner or "",
        "category": model.DEFAULT_CATEGORY,
        "verdict": None,
    }


def _wants_fields(wants: SkillWants) -> dict[str, Any]:
    return {
        "env_vars": [HubEnvVarRecord(**vars(one)) for one in wants.secrets],
        "wants": WantsRecord(**vars(wants)),
    }
