"""HTTP API of what OpenClaw's own client asks besides ClawHub's command line. Reading needs no credential."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Path, Query, Request
from pydantic import Field

from roost.agents.library.hub.clawhub.schemas import VERDICTS, to_millis
from roost.agents.library.hub.clawhub.service import RegistryService
from roost.agents.library.hub.model import HubFilter, HubListing, HubVersion, check_tag, parse_reference
from roost.agents.library.hub.service import HubService
from roost.agents.library.skills.verdict import VerdictLevel
from roost.core.problem import NotFound
from roost.web.rate_limit_fields import charge_requests
from roost.web.schemas import ApiSchema, SlashText, Text
from roost.web.service_registry import provide_service

Hub = Annotated[HubService, Depends(provide_service(HubService))]
Registry = Annotated[RegistryService, Depends(provide_service(RegistryService))]
Slug = Annotated[str, SlashText, Path(max_length=128)]
_Handle = Annotated[str | None, Query(alias="ownerHandle", max_length=64)]
router = APIRouter(tags=["clawhub"])
_VERDICTS_LIMIT = 100  # what the client asks at once
_FINDINGS_SHOWN = 10


class TrendingQuery(ApiSchema):
    limit: Annotated[int, Field(ge=1, le=100)] = 20


class PublisherRecord(ApiSchema):
    handle: str


class MetricsRecord(ApiSchema):
    updated_at: int


class TrendingSkillRecord(ApiSchema):
    slug: str
    display_name: str
    summary: str
    source: Literal["clawhub"] = "clawhub"
    publisher: PublisherRecord
    metrics: MetricsRecord


class TrendingResponse(ApiSchema):
    items: Sequence[TrendingSkillRecord]


class InstallArchiveRecord(ApiSchema):
    version: str
    download_url: str


class InstallResolutionResponse(ApiSchema):
    """Where the client gets the newest version."""

    ok: Literal[True] = True
    slug: str
    install_kind: Literal["archive"] = "archive"
    archive: InstallArchiveRecord


class VerdictTarget(ApiSchema):
    """A version that the client is about to install."""

    slug: Annotated[Text, Field(max_length=128, examples=["json-tools"])]
    owner_handle: Annotated[Text, Field(max_length=64)] | None = None
    version: Annotated[Text, Field(max_length=128, examples=["1.0.0"])]


class SecurityVerdictsRequest(ApiSchema):
    items: Annotated[Sequence[VerdictTarget], Field(max_length=_VERDICTS_LIMIT)]


class SecurityRecord(ApiSchema):
    status: Literal["clean", "suspicious", "malicious"]
    passed: bool


class VerdictErrorRecord(ApiSchema):
    code: Literal["skill_not_found"] = "skill_not_found"
    message: str


class ArtifactRecord(ApiSchema):
    """The folder of a version."""

    cid: str


class VerificationResponse(ApiSchema):
    """The verdict of the check; a client installs what is `blocked` in no case, and asks about `review`."""

    ok: bool
    decision: Literal["pass", "review", "blocked", "fail"]
    reasons: Sequence[str]
    slug: str | None = None
    version: str | None = None
    display_name: str | None = None
    publisher_handle: str | None = None
    created_at: int | None = None
    skill_url: str | None = None
    security_audit_url: str | None = None
    overview: str | None = None
    security: SecurityRecord | None = None


class SkillCardRecord(ApiSchema):
    """A generated description of a skill, which this hub does not have."""

    available: Literal[False] = False


class SkillVerificationResponse(VerificationResponse):
    """The verdict as the command line reads it, which knows `pass` and `fail` alone."""

    format: Annotated[Literal["clawhub.skill.verify.v1"], Field(alias="schema")] = "clawhub.skill.verify.v1"
    page_url: str
    publisher_display_name: str
    publisher_profile_url: None = None
    resolved_from: Literal["latest", "version", "tag"]
    tag: str | None
    card: SkillCardRecord = SkillCardRecord()
    artifact: ArtifactRecord
    provenance: None = None
    signature: None = None


class SecurityVerdictRecord(VerificationResponse):
    requested_slug: str
    requested_owner_handle: str | None
    requested_version: str
    error: VerdictErrorRecord | None = None


class SecurityVerdictsResponse(ApiSchema):
    items: Sequence[SecurityVerdictRecord]


_DECISIONS: dict[VerdictLevel, Literal["pass", "review", "blocked"]] = {
    VerdictLevel.CLEAN: "pass",
    VerdictLevel.REVIEW: "review",
    VerdictLevel.DANGEROUS: "blocked",  # an agent cannot acknowledge for its owner
}


def verification_response(origin: str, found: HubListing) -> VerificationResponse:
    """`origin` is the public address of the registry."""
    skill, version = found.skill, found.version
    level = version.verdict.level
    address = f"{origin}/api/v1/skills/{skill.name}"
    query = urlencode({"ownerHandle": skill.owner, "version": version.version})
    return VerificationResponse(
        ok=level is VerdictLevel.CLEAN,
        decision=_DECISIONS[level],
        reasons=sorted({one.rule for one in version.verdict.findings}),
        slug=skill.name,
        version=version.version,
        display_name=skill.name,
        publisher_handle=skill.owner,
        created_at=to_millis(version.created_at),
        skill_url=f"{address}?{query}",
        security_audit_url=f"{address}/scan?{query}",
        overview=_describe(version),
        security=SecurityRecord(status=VERDICTS[level], passed=level is VerdictLevel.CLEAN),
    )


def _verdict_record(target: VerdictTarget, origin: str, found: HubListing | NotFound) -> SecurityVerdictRecord:
    requested: dict[str, Any] = {
        "requested_slug": target.slug,
        "requested_owner_handle": target.owner_handle,
        "requested_version": target.version,
    }
    if isinstance(found, NotFound):
        error = VerdictErrorRecord(message=found.message)
        return SecurityVerdictRecord(ok=False, decision="fail", reasons=["skill.not_found"], error=error, **requested)
    return SecurityVerdictRecord(**vars(verification_response(origin, found)), **requested)


def _describe(version: HubVersion) -> str:
    verdict = version.verdict
    if not verdict.findings:
        return "The check found nothing."
    shown = [f"{one.rule} ({one.path}:{one.line})" for one in verdict.findings[:_FINDINGS_SHOWN]]
    more = len(verdict.findings) - len(shown)
    reason = f". The publisher's reason: {version.acknowledgement}" if version.acknowledgement else ""
    return "The check found " + ", ".join(shown) + (f" and {more} more" if more else "") + reason


@router.get("/api/v1/trending")
async def list_trending(query: Annotated[TrendingQuery, Query()], hub: Hub) -> TrendingResponse:
    """List the published skills that most tenants have installed."""
    found, _ = await hub.search(HubFilter(), None, query.limit)
    items = [
        TrendingSkillRecord(
            slug=one.skill.name,
            display_name=one.skill.name,
            summary=one.skill.description,
            publisher=PublisherRecord(handle=one.skill.owner),
            metrics=MetricsRecord(updated_at=to_millis(one.skill.updated_at)),
        )
        for one in found
    ]
    return TrendingResponse(items=items)


@router.get("/api/v1/skills/{slug}/install")
async def resolve_installation(hub: Hub, slug: Slug, owner: _Handle = None) -> InstallResolutionResponse:
    """Return where a client gets the newest version."""
    found = await hub.get(parse_reference(slug, owner))
    skill, number = found.skill, found.version.version
    query = urlencode({"slug": skill.name, "ownerHandle": skill.owner, "version": number})
    archive = InstallArchiveRecord(version=number, download_url=f"/api/v1/download?{query}")
    return InstallResolutionResponse(slug=skill.name, archive=archive)


@router.get("/api/v1/skills/{slug}/verify")
async def verify_version(
    hub: Hub,
    registry: Registry,
    slug: Slug,
    owner: _Handle = None,
    version: Annotated[str | None, Query(max_length=128)] = None,
    tag: Annotated[str | None, Query(max_length=128)] = None,
) -> SkillVerificationResponse:
    """Return the verdict of the check of a version, by default the newest."""
    check_tag(tag)
    found = await hub.get(parse_reference(slug, owner), version)
    verified = verification_response(registry.origin, found)
    fields: dict[str, Any] = {**vars(verified), "decision": "pass" if verified.ok else "fail"}
    return SkillVerificationResponse(
        **fields,
        page_url=verified.skill_url or "",
        publisher_display_name=found.skill.author_name,
        resolved_from="version" if version else "tag" if tag else "latest",
        tag=tag,
        artifact=ArtifactRecord(cid=found.version.cid),
    )


@router.post("/api/v1/skills/-/security-verdicts")
async def list_security_verdicts(
    request: Request, body: SecurityVerdictsRequest, registry: Registry
) -> SecurityVerdictsResponse:
    """Return the verdicts of versions that a client is about to install; each counts as a request."""
    charge_requests(request.scope, len(body.items) - 1)
    wanted = [(parse_reference(one.slug, one.owner_handle), one.version) for one in body.items]
    found = await registry.find_versions(wanted)
    pairs = zip(body.items, found, strict=True)
    return SecurityVerdictsResponse(items=[_verdict_record(target, registry.origin, one) for target, one in pairs])
