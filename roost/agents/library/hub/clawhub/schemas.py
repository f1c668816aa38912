"""Requests and responses of ClawHub's protocol, version 1; times are milliseconds since 1970."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import Field, StrictInt

from roost.agents.library.hub.errors import InvalidHubRequest
from roost.agents.library.hub.model import (
    LATEST_TAG,
    QUERY_LIMIT,
    HubListing,
    HubSkill,
    HubSort,
    HubVersion,
    Publication,
)
from roost.agents.library.skills.bundle import BYTES_LIMIT, FILES_LIMIT
from roost.agents.library.skills.verdict import VerdictLevel
from roost.web.schemas import BINARY, ApiSchema, Text, describe_body

_LICENSE = "MIT-0"  # the only one that the protocol knows
_RESULTS_LIMIT = 200
_NEWEST_FIRST = frozenset({"createdAt", "newest", "updated", "updatedAt"})
VERDICTS: Mapping[VerdictLevel, Literal["clean", "suspicious", "malicious"]] = {
    VerdictLevel.CLEAN: "clean",
    VerdictLevel.REVIEW: "suspicious",
    VerdictLevel.DANGEROUS: "malicious",
}
_SEVERITIES: Mapping[VerdictLevel, Literal["info", "warn", "critical"]] = {
    VerdictLevel.CLEAN: "info",
    VerdictLevel.REVIEW: "warn",
    VerdictLevel.DANGEROUS: "critical",
}
_Name = Annotated[Text, Field(min_length=1, max_length=128, examples=["json-tools"])]
_Limit = Annotated[int, Field(ge=1, le=_RESULTS_LIMIT)]
_Version = Annotated[Text, Field(max_length=64, examples=["1.0.0"])]


class RegistryAddressRecord(ApiSchema):
    api_base: str
    auth_base: str


class RegistrySearchQuery(ApiSchema):
    q: Annotated[Text, Field(max_length=QUERY_LIMIT)] = ""
    limit: _Limit = 25
    mode: Annotated[Text, Field(max_length=40, description="`exact`: `q` is the name of a skill.")] = ""


class RegistryListQuery(ApiSchema):
    limit: _Limit = 25
    sort: Annotated[Text, Field(max_length=40, description="`createdAt`, `updated`, or by installations.")] = ""
    cursor: Annotated[Text | None, Field(max_length=500)] = None
    prefix: Annotated[Text | None, Field(max_length=64)] = None

    @property
    def order(self) -> HubSort:
        return HubSort.NEWEST if self.sort in _NEWEST_FIRST else HubSort.POPULAR


class AnnounceFileRequest(ApiSchema):
    """A file that will be uploaded for a publication."""

    path: Text
    size: Annotated[StrictInt, Field(ge=0, le=BYTES_LIMIT)]
    sha256: Text


class PublishedFileRequest(ApiSchema):
    path: Text
    storage_id: Annotated[Text, Field(max_length=64)]
    sha256: Annotated[Text, Field(max_length=64)]


class PublishBundleFields(ApiSchema):
    """What a publication says besides its files."""

    slug: _Name
    version: _Version
    owner_handle: Annotated[Text, Field(max_length=64)] | None = None
    changelog: Annotated[Text, Field(max_length=10_000)] = ""
    categories: Annotated[Sequence[Text] | None, Field(max_length=20)] = None
    topics: Annotated[Sequence[Text] | None, Field(max_length=20)] = None
    tags: Annotated[Sequence[Text], Field(max_length=20, examples=[["latest"]])] = ()

    def publication(self) -> Publication:
        """Return what is said. Raises InvalidHubRequest for a tag that no skill has."""
        if others := [tag for tag in self.tags if tag != LATEST_TAG]:
            raise InvalidHubRequest(f"tags must be {LATEST_TAG!r}, the only one of this hub, got {others[0][:80]!r}")
        return Publication(
            version=self.version,
            changelog=self.changelog,
            category=self.categories[0] if self.categories else None,
            tags=self.topics,
        )


class PublishBundleRequest(PublishBundleFields):
    """A publication of uploaded files."""

    files: Annotated[Sequence[PublishedFileRequest], Field(min_length=1, max_length=FILES_LIMIT)]


class WithdrawSkillRequest(ApiSchema):
    owner_handle: Annotated[Text, Field(max_length=64)] | None = None


class ReportInstallRequest(ApiSchema):
    """What a client tells after an installation."""

    slug: Annotated[Text, Field(max_length=128)] = ""
    owner_handle: Annotated[Text, Field(max_length=64)] | None = None


class RegistryOwnerRecord(ApiSchema):
    handle: str
    display_name: str
    image: str | None = None


class RegistryResultRecord(ApiSchema):
    slug: str
    owner_handle: str
    display_name: str
    summary: str
    version: str
    score: float
    downloads: int
    updated_at: int
    owner: RegistryOwnerRecord
    source: Literal["clawhub"] = "clawhub"


class RegistrySearchResponse(ApiSchema):
    results: Sequence[RegistryResultRecord]


class LatestVersionRecord(ApiSchema):
    version: str
    created_at: int
    changelog: str
    license: Literal["MIT-0"] | None


class RegistryVersionFileRecord(ApiSchema):
    path: str
    size: int
    sha256: str


class RegistryVersionRecord(LatestVersionRecord):
    cid: str
    files: Sequence[RegistryVersionFileRecord]


class RegistryStatsRecord(ApiSchema):
    downloads: int
    installs_all_time: int
    stars: int = 0


class RegistrySkillRecord(ApiSchema):
    slug: str
    display_name: str
    summary: str
    description: str
    topics: Sequence[str]
    tags: Mapping[str, str] = Field(examples=[{"latest": "1.0.0"}])
    stats: RegistryStatsRecord
    created_at: int
    updated_at: int


class RegistryListItem(RegistrySkillRecord):
    latest_version: LatestVersionRecord
    owner: RegistryOwnerRecord


class RegistryListResponse(ApiSchema):
    items: Sequence[RegistryListItem]
    next_cursor: str | None


class EvidenceRecord(ApiSchema):
    code: str
    severity: Literal["info", "warn", "critical"]
    file: str
    line: int
    message: str
    evidence: str


class ModerationRecord(ApiSchema):
    """The verdict of the check. Clients ask before they install what is suspicious."""

    is_suspicious: bool
    is_malware_blocked: bool
    verdict: Literal["clean", "suspicious", "malicious"]
    reason_codes: Sequence[str]
    engine_version: str
    evidence: Sequence[EvidenceRecord]


class RegistrySkillResponse(ApiSchema):
    skill: RegistrySkillRecord
    latest_version: LatestVersionRecord
    owner: RegistryOwnerRecord
    moderation: ModerationRecord


class ModerationResponse(ApiSchema):
    moderation: ModerationRecord


class RegistryVersionList(ApiSchema):
    items: Sequence[LatestVersionRecord]
    next_cursor: str | None = None


class RegistryVersionResponse(ApiSchema):
    version: RegistryVersionRecord
    skill: RegistrySkillRecord


class ResolveVersionResponse(ApiSchema):
    match: LatestVersionRecord | None
    latest_version: LatestVersionRecord


class RegistryUserRecord(RegistryOwnerRecord):
    role: Literal["user"] = "user"


class WhoamiResponse(ApiSchema):
    user: RegistryUserRecord


class AnnounceFileResponse(ApiSchema):
    upload_url: str
    upload_ticket: str


class ReceiveFileResponse(ApiSchema):
    storage_id: str


class PublishBundleResponse(ApiSchema):
    ok: Literal[True] = True
    skill_id: str
    version_id: str
    slug: str
    version: str
    publication_status: Literal["published"] = "published"


class RegistryChangeResponse(ApiSchema):
    ok: Literal[True] = True


def _describe_publication() -> dict[str, Any]:
    """Return the OpenAPI description of the two bodies that publish a version."""
    body = PublishBundleFields.model_json_schema(by_alias=True)
    file = PublishedFileRequest.model_json_schema(by_alias=True)
    body["properties"]["files"] = {"type": "array", "items": file}
    description = describe_body("application/json", {**body, "required": [*body["required"], "files"]})
    fields: dict[str, Any] = {"payload": {"type": "string"}, "files": BINARY}
    form = {"type": "object", "required": ["payload", "files"], "properties": fields}
    description["requestBody"]["content"]["multipart/form-data"] = {"schema": form}
    return description


PUBLISH_OPENAPI = _describe_publication()


def list_response(found: Sequence[HubListing], next_cursor: str | None) -> RegistryListResponse:
    items = [
        RegistryListItem(
            **_skill_fields(one.skill, one.version), latest_version=latest_record(one.version), owner=_owner(one.skill)
        )
        for one in found
    ]
    return RegistryListResponse(items=items, next_cursor=next_cursor)


def skill_response(found: HubListing) -> RegistrySkillResponse:
    return RegistrySkillResponse(
        skill=RegistrySkillRecord(**_skill_fields(found.skill, found.version)),
        latest_version=latest_record(found.version),
        owner=_owner(found.skill),
        moderation=describe_moderation(found.version),
    )


def version_response(found: HubListing, files: Sequence[RegistryVersionFileRecord]) -> RegistryVersionResponse:
    latest = latest_record(found.version)
    return RegistryVersionResponse(
        version=RegistryVersionRecord(**vars(latest), cid=found.version.cid, files=files),
        skill=RegistrySkillRecord(**_skill_fields(found.skill, found.version)),
    )


def describe_moderation(version: HubVersion) -> ModerationRecord:
    found = version.verdict
    evidence = [
        EvidenceRecord(
            code=one.rule,
            severity=_SEVERITIES[one.level],
            file=one.path,
            line=one.line,
            message=one.rule,
            evidence=one.excerpt,
        )
        for one in found.findings
    ]
    return ModerationRecord(
        is_suspicious=found.level is VerdictLevel.DANGEROUS,
        is_malware_blocked=False,
        verdict=VERDICTS[found.level],
        reason_codes=sorted({one.rule for one in found.findings}),
        engine_version=found.rules_version,
        evidence=evidence,
    )


def search_result(found: HubListing, score: float) -> RegistryResultRecord:
    skill = found.skill
    return RegistryResultRecord(
        slug=skill.name,
        owner_handle=skill.owner,
        display_name=_title(skill),
        summary=skill.description,
        version=found.version.version,
        score=score,
        downloads=skill.install_count,
        updated_at=to_millis(skill.updated_at),
        owner=_owner(skill),
    )


def _skill_fields(skill: HubSkill, latest: HubVersion) -> dict[str, Any]:
    return {
        "slug": skill.name,
        "display_name": _title(skill),
        "summary": skill.description,
        "description": skill.description,
        "topics": skill.tags,
        "tags": {"latest": latest.version},
        "stats": RegistryStatsRecord(downloads=skill.install_count, installs_all_time=skill.install_count),
        "created_at": to_millis(skill.created_at),
        "updated_at": to_millis(skill.updated_at),
    }


def latest_record(version: HubVersion) -> LatestVersionRecord:
    return LatestVersionRecord(
        version=version.version,
        created_at=to_millis(version.created_at),
        changelog=version.changelog,
        license=_LICENSE if version.license == _LICENSE else None,
    )


def _owner(skill: HubSkill) -> RegistryOwnerRecord:
    return RegistryOwnerRecord(handle=skill.owner, display_name=skill.author_name, image=skill.author_logo_url)


def _title(skill: HubSkill) -> str:
    return skill.name.replace("-", " ").title()


def to_millis(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)
