"""The hub over HTTP (contract, Skills); publishing is beyond the contract."""

from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Query
from pydantic import Field, StrictBool

from roost.agents.library.hub import model
from roost.agents.library.hub.errors import RegistryRefused
from roost.agents.library.hub.maintenance import is_bundled
from roost.agents.library.hub.model import HubFilter, HubListing, HubSort, HubVersion, Publication, parse_reference
from roost.agents.library.hub.publishing import HubPublisher
from roost.agents.library.hub.registries import HubRegistries, RegistryDetail, RegistrySkill, is_registry_id
from roost.agents.library.hub.service import HubService
from roost.agents.library.skills.errors import AcknowledgementRefused
from roost.agents.library.skills.schemas import EnvVarRecord, SkillRecord, SkillResponse, VerdictRecord, WantsRecord
from roost.agents.library.skills.verdict import VerdictLevel
from roost.identity.authenticator import ServiceCaller, TenantCaller
from roost.identity.caller import Caller, CallerKind
from roost.web.schemas import ApiSchema, Moment, SlashText, Text
from roost.web.service_registry import provide_service

Service = Annotated[HubService, Depends(provide_service(HubService))]
Publisher = Annotated[HubPublisher, Depends(provide_service(HubPublisher))]
Registries = Annotated[HubRegistries, Depends(provide_service(HubRegistries))]
Slug = Annotated[str, SlashText]
HubSkillId = Annotated[str, SlashText, Path(alias="hubSkillId", max_length=256)]
SkillId = Annotated[str, SlashText, Path(alias="skillId")]
Version = Annotated[str | None, Query(max_length=128, description="A number or a CID; by default the newest.")]
router = APIRouter(prefix="/v0", tags=["hub"])
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


def registry_skill_detail(found: RegistryDetail) -> HubSkillDetail:
    """Return the record of a skill of another server, whose files were checked here."""
    fields = {
        **_registry_fields(found.skill),
        "env_vars": found.file.wants.secrets,
        "wants": found.file.wants,
        "description": found.file.description,
        "license": found.file.license,
        "verdict": found.verdict,
        "long_description": found.body,
        "versions": (),
    }
    return HubSkillDetail(skill=HubSkillDetailRecord.model_validate(fields, from_attributes=True))


def hub_skill_detail(found: HubListing, versions: Sequence[HubVersion], tenant_id: str) -> HubSkillDetail:
    fields = {**_fields(found), "long_description": found.version.body, "versions": [_version(one) for one in versions]}
    record = HubSkillDetailRecord.model_validate(fields, from_attributes=True)
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
        "env_vars": version.wants.secrets,
        "wants": version.wants,
        "license": version.license,
        "verdict": version.verdict,
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


def _is_elsewhere(caller: Caller, hub_skill_id: str) -> bool:
    """Return whether the skill is another server's. Raises RegistryRefused for an agent: it has its own egress."""
    if is_registry_id(hub_skill_id) and caller.kind is CallerKind.PLATFORM:
        raise RegistryRefused
    return is_registry_id(hub_skill_id)


@router.get("/hub")
async def list_hub_skills(
    caller: TenantCaller, query: Annotated[HubQuery, Query()], hub: Service, registries: Registries
) -> HubSkillList:
    """Browse the hub; the owner's first page also has skills of the registries of other servers."""
    found, next_cursor = await hub.search(query.filter(), query.cursor, query.limit)
    is_first = query.cursor is None and query.category is None and query.featured is None
    is_first = is_first and caller.kind is not CallerKind.PLATFORM
    elsewhere = await registries.search(query.q or "") if is_first else ()
    records = [*map(_fields, found), *map(_registry_fields, elsewhere)]
    return HubSkillList(
        skills=[HubSkillRecord.model_validate(fields, from_attributes=True) for fields in records],
        next_cursor=next_cursor,
        categories=await hub.list_categories(),
    )


@router.get("/hub/{slug}")
async def get_hub_skill(
    caller: TenantCaller, slug: Slug, hub: Service, registries: Registries, version: Version = None
) -> HubSkillDetail:
    """Return a skill by its id or its name, with the verdict of the check."""
    if _is_elsewhere(caller, slug):
        return registry_skill_detail(await registries.get(caller.tenant_id, slug, version))
    return hub_skill_detail(*await hub.get_detail(parse_reference(slug), version), caller.tenant_id)


@router.get("/hub/{owner}/{name}")
async def get_hub_skill_of_owner(
    caller: TenantCaller, owner: str, name: str, hub: Service, version: Version = None
) -> HubSkillDetail:
    """Return a skill by its slug, `@owner/name`."""
    return hub_skill_detail(*await hub.get_detail(parse_reference(name, owner), version), caller.tenant_id)


@router.post("/hub/{hubSkillId}/install")
async def install_hub_skill(
    caller: TenantCaller,
    hub_skill_id: HubSkillId,
    hub: Service,
    registries: Registries,
    body: InstallHubSkillRequest | None = None,
) -> SkillResponse:
    """Put a skill of the hub into the library of the tenant."""
    chosen = body or InstallHubSkillRequest()
    if chosen.acknowledge and caller.kind is CallerKind.PLATFORM:
        raise AcknowledgementRefused
    install = registries.install if _is_elsewhere(caller, hub_skill_id) else hub.install
    installed = await install(caller.tenant_id, hub_skill_id, chosen.version, acknowledged=chosen.acknowledge)
    return SkillResponse(skill=SkillRecord.from_version(installed.skill, installed.version))


@router.post("/skills/{skillId}/publish")
async def publish_skill(
    caller: ServiceCaller, skill_id: SkillId, publisher: Publisher, body: PublishSkillRequest | None = None
) -> PublishSkillResponse:
    """Publish a version of a skill of the library to the hub, or change the texts of a published skill."""
    publication = (body or PublishSkillRequest()).publication()
    published = await publisher.publish(caller.tenant_id, skill_id, publication)
    return PublishSkillResponse(skill=HubSkillRecord.model_validate(_fields(published), from_attributes=True))


@router.delete("/hub/{hubSkillId}")
async def unpublish_skill(
    caller: ServiceCaller, hub_skill_id: HubSkillId, publisher: Publisher
) -> UnpublishSkillResponse:
    """Withdraw a skill of one's own from the hub; libraries that have it keep it."""
    removed = await publisher.unpublish(caller.tenant_id, hub_skill_id)
    return UnpublishSkillResponse(message=f"{removed.slug} is no longer in the hub")
