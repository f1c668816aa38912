"""Requests and responses of OpenClaw's own client; times are milliseconds since 1970."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal
from urllib.parse import urlencode

from pydantic import Field

from roost.agents.library.hub.model import HubListing, HubSkill, HubVersion
from roost.agents.library.skills.verdict import VerdictLevel
from roost.core.problem import NotFound
from roost.web.schemas import ApiSchema, Text

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
_STATUSES: dict[VerdictLevel, Literal["clean", "suspicious", "malicious"]] = {
    VerdictLevel.CLEAN: "clean",
    VerdictLevel.REVIEW: "suspicious",
    VerdictLevel.DANGEROUS: "malicious",
}


def trending_response(found: Sequence[HubListing]) -> TrendingResponse:
    items = [
        TrendingSkillRecord(
            slug=one.skill.name,
            display_name=one.skill.name,
            summary=one.skill.description,
            publisher=PublisherRecord(handle=one.skill.owner),
            metrics=MetricsRecord(updated_at=int(one.skill.updated_at.timestamp() * 1000)),
        )
        for one in found
    ]
    return TrendingResponse(items=items)


def install_resolution(skill: HubSkill, version: HubVersion) -> InstallResolutionResponse:
    query = urlencode({"slug": skill.name, "ownerHandle": skill.owner, "version": version.version})
    archive = InstallArchiveRecord(version=version.version, download_url=f"/api/v1/download?{query}")
    return InstallResolutionResponse(slug=skill.name, archive=archive)


def verification_response(origin: str, skill: HubSkill, version: HubVersion) -> VerificationResponse:
    """`origin` is the public address of the registry."""
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
        created_at=int(version.created_at.timestamp() * 1000),
        skill_url=f"{address}?{query}",
        security_audit_url=f"{address}/scan?{query}",
        overview=_describe(version),
        security=SecurityRecord(status=_STATUSES[level], passed=level is VerdictLevel.CLEAN),
    )


def skill_verification(
    verified: VerificationResponse, found: HubListing, version: str | None, tag: str | None
) -> SkillVerificationResponse:
    """Return what the command line reads of a verdict about the version that it names by a number or a tag."""
    fields: dict[str, Any] = {**vars(verified), "decision": "pass" if verified.ok else "fail"}
    return SkillVerificationResponse(
        **fields,
        page_url=verified.skill_url or "",
        publisher_display_name=found.skill.author_name,
        resolved_from="version" if version else "tag" if tag else "latest",
        tag=tag,
        artifact=ArtifactRecord(cid=found.version.cid),
    )


def security_verdicts(
    origin: str, targets: Sequence[VerdictTarget], found: Sequence[HubListing | NotFound]
) -> SecurityVerdictsResponse:
    """Return the verdicts about targets, of which those are `found` or not published."""
    return SecurityVerdictsResponse(
        items=[
            _missing(target, one) if isinstance(one, NotFound) else _verdict(target, origin, one)
            for target, one in zip(targets, found, strict=True)
        ]
    )


def _verdict(target: VerdictTarget, origin: str, found: HubListing) -> SecurityVerdictRecord:
    verified = verification_response(origin, found.skill, found.version)
    return SecurityVerdictRecord(**vars(verified), **_requested(target))


def _missing(target: VerdictTarget, problem: NotFound) -> SecurityVerdictRecord:
    error = VerdictErrorRecord(message=problem.message)
    return SecurityVerdictRecord(
        ok=False, decision="fail", reasons=["skill.not_found"], error=error, **_requested(target)
    )


def _requested(target: VerdictTarget) -> dict[str, Any]:
    return {
        "requested_slug": target.slug,
        "requested_owner_handle": target.owner_handle,
        "requested_version": target.version,
    }


def _describe(version: HubVersion) -> str:
    verdict = version.verdict
    if not verdict.findings:
        return "The check found nothing."
    shown = [f"{one.rule} ({one.path}:{one.line})" for one in verdict.findings[:_FINDINGS_SHOWN]]
    more = len(verdict.findings) - len(shown)
    reason = f". The publisher's reason: {version.acknowledgement}" if version.acknowledgement else ""
    return "The check found " + ", ".join(shown) + (f" and {more} more" if more else "") + reason
