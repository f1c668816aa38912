"""HTTP API of what OpenClaw's own client asks besides ClawHub's command line. Reading needs no credential."""

from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query, Request

from roost.agents.library.hub.clawhub.openclaw import schemas
from roost.agents.library.hub.clawhub.service import RegistryService
from roost.agents.library.hub.model import HubFilter, check_tag, parse_reference
from roost.agents.library.hub.service import HubService
from roost.web.rate_limit_fields import charge_requests
from roost.web.schemas import SlashText
from roost.web.service_registry import provide_service

Hub = Annotated[HubService, Depends(provide_service(HubService))]
Registry = Annotated[RegistryService, Depends(provide_service(RegistryService))]
Slug = Annotated[str, SlashText, Path(max_length=128)]
_Handle = Annotated[str | None, Query(alias="ownerHandle", max_length=64)]
router = APIRouter(tags=["clawhub"])


@router.get("/api/v1/trending")
async def list_trending(query: Annotated[schemas.TrendingQuery, Query()], hub: Hub) -> schemas.TrendingResponse:
    """List the published skills that most tenants have installed."""
    return schemas.trending_response((await hub.search(HubFilter(), None, query.limit)).listings)


@router.get("/api/v1/skills/{slug}/install")
async def resolve_installation(hub: Hub, slug: Slug, owner: _Handle = None) -> schemas.InstallResolutionResponse:
    """Return where a client gets the newest version."""
    found = await hub.get(parse_reference(slug, owner))
    return schemas.install_resolution(found.skill, found.version)


@router.get("/api/v1/skills/{slug}/verify")
async def verify_version(
    hub: Hub,
    registry: Registry,
    slug: Slug,
    owner: _Handle = None,
    version: Annotated[str | None, Query(max_length=128)] = None,
    tag: Annotated[str | None, Query(max_length=128)] = None,
) -> schemas.SkillVerificationResponse:
    """Return the verdict of the check of a version, by default the newest."""
    check_tag(tag)
    found = await hub.get(parse_reference(slug, owner), version)
    verified = schemas.verification_response(registry.origin, found.skill, found.version)
    return schemas.skill_verification(verified, found, version, tag)


@router.post("/api/v1/skills/-/security-verdicts")
async def list_security_verdicts(
    request: Request, body: schemas.SecurityVerdictsRequest, registry: Registry
) -> schemas.SecurityVerdictsResponse:
    """Return the verdicts of versions that a client is about to install; each counts as a request."""
    charge_requests(request.scope, len(body.items) - 1)
    wanted = [(parse_reference(one.slug, one.owner_handle), one.version) for one in body.items]
    found = await registry.find_versions(wanted)
    return schemas.security_verdicts(registry.origin, body.items, found)
