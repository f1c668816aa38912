"""The hub over HTTP (contract, Skills); publishing is beyond the contract."""

from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query

from roost.agents.library.hub import schemas
from roost.agents.library.hub.errors import RegistryRefused
from roost.agents.library.hub.model import parse_reference
from roost.agents.library.hub.publishing import HubPublisher
from roost.agents.library.hub.registries import HubRegistries, is_registry_id
from roost.agents.library.hub.service import HubService
from roost.agents.library.skills.errors import AcknowledgementRefused
from roost.agents.library.skills.schemas import SkillRecord, SkillResponse
from roost.identity.authenticator import ServiceCaller, TenantCaller
from roost.identity.caller import Caller, CallerKind
from roost.web.schemas import SlashText
from roost.web.service_registry import provide_service

Service = Annotated[HubService, Depends(provide_service(HubService))]
Publisher = Annotated[HubPublisher, Depends(provide_service(HubPublisher))]
Registries = Annotated[HubRegistries, Depends(provide_service(HubRegistries))]
Slug = Annotated[str, SlashText]
HubSkillId = Annotated[str, SlashText, Path(alias="hubSkillId", max_length=256)]
SkillId = Annotated[str, SlashText, Path(alias="skillId")]
Version = Annotated[str | None, Query(max_length=128, description="A number or a CID; by default the newest.")]
router = APIRouter(prefix="/v0", tags=["hub"])


def _is_elsewhere(caller: Caller, hub_skill_id: str) -> bool:
    """Return whether the skill is another server's. Raises RegistryRefused for an agent: it has its own egress."""
    if is_registry_id(hub_skill_id) and caller.kind is CallerKind.PLATFORM:
        raise RegistryRefused
    return is_registry_id(hub_skill_id)


@router.get("/hub")
async def list_hub_skills(
    caller: TenantCaller, query: Annotated[schemas.HubQuery, Query()], hub: Service, registries: Registries
) -> schemas.HubSkillList:
    """Browse the hub; the owner's first page also has skills of the registries of other servers."""
    found, next_cursor = await hub.search(query.filter(), query.cursor, query.limit)
    is_first = query.cursor is None and query.category is None and query.featured is None
    is_first = is_first and caller.kind is not CallerKind.PLATFORM
    elsewhere = await registries.search(query.q or "") if is_first else ()
    return schemas.HubSkillList(
        skills=[*map(schemas.hub_skill, found), *map(schemas.registry_skill, elsewhere)],
        next_cursor=next_cursor,
        categories=await hub.list_categories(),
    )


@router.get("/hub/{slug}")
async def get_hub_skill(
    caller: TenantCaller, slug: Slug, hub: Service, registries: Registries, version: Version = None
) -> schemas.HubSkillDetail:
    """Return a skill by its id or its name, with the verdict of the check."""
    if _is_elsewhere(caller, slug):
        return schemas.registry_skill_detail(await registries.get(caller.tenant_id, slug, version))
    return schemas.hub_skill_detail(*await hub.get_detail(parse_reference(slug), version), caller.tenant_id)


@router.get("/hub/{owner}/{name}")
async def get_hub_skill_of_owner(
    caller: TenantCaller, owner: str, name: str, hub: Service, version: Version = None
) -> schemas.HubSkillDetail:
    """Return a skill by its slug, `@owner/name`."""
    return schemas.hub_skill_detail(*await hub.get_detail(parse_reference(name, owner), version), caller.tenant_id)


@router.post("/hub/{hubSkillId}/install")
async def install_hub_skill(
    caller: TenantCaller,
    hub_skill_id: HubSkillId,
    hub: Service,
    registries: Registries,
    body: schemas.InstallHubSkillRequest | None = None,
) -> SkillResponse:
    """Put a skill of the hub into the library of the tenant."""
    chosen = body or schemas.InstallHubSkillRequest()
    if chosen.acknowledge and caller.kind is CallerKind.PLATFORM:
        raise AcknowledgementRefused
    install = registries.install if _is_elsewhere(caller, hub_skill_id) else hub.install
    installed = await install(caller.tenant_id, hub_skill_id, chosen.version, acknowledged=chosen.acknowledge)
    return SkillResponse(skill=SkillRecord.from_version(installed.skill, installed.version))


@router.post("/skills/{skillId}/publish")
async def publish_skill(
    caller: ServiceCaller, skill_id: SkillId, publisher: Publisher, body: schemas.PublishSkillRequest | None = None
) -> schemas.PublishSkillResponse:
    """Publish a version of a skill of the library to the hub, or change the texts of a published skill."""
    publication = (body or schemas.PublishSkillRequest()).publication()
    published = await publisher.publish(caller.tenant_id, skill_id, publication)
    return schemas.PublishSkillResponse(skill=schemas.hub_skill(published))


@router.delete("/hub/{hubSkillId}")
async def unpublish_skill(
    caller: ServiceCaller, hub_skill_id: HubSkillId, publisher: Publisher
) -> schemas.UnpublishSkillResponse:
    """Withdraw a skill of one's own from the hub; libraries that have it keep it."""
    removed = await publisher.unpublish(caller.tenant_id, hub_skill_id)
    return schemas.UnpublishSkillResponse(message=f"{removed.slug} is no longer in the hub")
