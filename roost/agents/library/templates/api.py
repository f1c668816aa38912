"""Templates of a tenant, and the public marketplace (contract, Templates)."""

from collections.abc import Sequence
from typing import Annotated, Any, Self

from fastapi import APIRouter, Depends, Path, Query
from pydantic import AfterValidator, Field, StrictBool

from roost.agents.library.templates.manifest import SLUG_LIMIT, SLUG_PATTERN, check_agent_name
from roost.agents.library.templates.model import (
    MAX_PAGE_SIZE,
    PAGE_SIZE,
    InspectedTemplate,
    Submission,
    Template,
    TemplateFilter,
    TemplateSource,
    TemplateStatus,
    TemplateUpdate,
    TemplateVersion,
)
from roost.agents.library.templates.service import TemplateService
from roost.agents.registry.model import NAME_LIMIT
from roost.drivers.git.remote_contract import REMOTE_URL_LIMIT, RemoteRefs
from roost.identity.authenticator import ServiceCaller, TenantCaller
from roost.web.schemas import ApiSchema, Moment, Text
from roost.web.service_registry import provide_service

Service = Annotated[TemplateService, Depends(provide_service(TemplateService))]
TemplateId = Annotated[str, Path(alias="templateId", max_length=100)]
Slug = Annotated[str, Path(max_length=100)]
router = APIRouter(prefix="/v0", tags=["templates"])
_FETCH_ERRORS: dict[int | str, dict[str, Any]] = {504: {}}
_URL = "https://git.example/ada/reader.git"
_COMMIT = "b5c1d9e0f3a2c4b6d8e7f9a1b3c5d7e9f0a2b4c6"
_GitUrl = Annotated[Text, Field(min_length=1, max_length=REMOTE_URL_LIMIT, examples=[_URL])]
_Ref = Annotated[Text, Field(min_length=1, max_length=255, examples=["main"])]
_Path = Annotated[Text, Field(max_length=1000, examples=["templates/reader"])]
_Name = Annotated[Text, Field(max_length=NAME_LIMIT, examples=["Reader"]), AfterValidator(check_agent_name)]
_Slug = Annotated[str, Field(max_length=SLUG_LIMIT, pattern=SLUG_PATTERN, examples=["reader"])]
_CommitId = Annotated[str, Field(examples=[_COMMIT])]


class TemplateListQuery(ApiSchema):
    """`q` is searched for in slug, name and description; `cursor` is the `nextCursor` of the page before."""

    category: Annotated[Text, Field(max_length=100)] | None = None
    q: Annotated[Text, Field(max_length=100)] | None = None
    featured: bool | None = None
    cursor: Annotated[Text, Field(max_length=200)] | None = None
    limit: Annotated[int, Field(ge=1, le=MAX_PAGE_SIZE)] = PAGE_SIZE

    def to_filter(self) -> TemplateFilter:
        return TemplateFilter(self.category, self.q, self.featured)


class OwnTemplateListQuery(TemplateListQuery):
    """`submittedBy=me` is what the list has anyway."""

    submitted_by: Annotated[Text, Field(max_length=100)] | None = None


class GitRepositoryRequest(ApiSchema):
    git_url: _GitUrl


class ValidateTemplateRequest(GitRepositoryRequest):
    """A folder of a repository: `ref` is a branch, a tag or a commit id, and `branch` another name for it."""

    branch: _Ref | None = None
    ref: _Ref | None = None
    path: _Path | None = None
    name_override: _Name | None = None
    slug_override: _Slug | None = None

    def to_submission(self, *, is_public: bool = True) -> Submission:
        source = TemplateSource(self.git_url, self.ref or self.branch, self.path or None)
        return Submission(source, self.name_override, self.slug_override, is_public)


class SubmitTemplateRequest(ValidateTemplateRequest):
    """A template that is not `public` stays a draft, which only its tenant sees."""

    public: StrictBool = True


class UpdateTemplateRequest(ApiSchema):
    """Changes before the repository is fetched again; what is missing stays. An empty path is the root."""

    git_url: _GitUrl | None = None
    branch: _Ref | None = None
    ref: _Ref | None = None
    path: _Path | None = None
    name_override: _Name | None = None
    slug_override: _Slug | None = None
    public: StrictBool | None = None

    def to_update(self) -> TemplateUpdate:
        names = (self.name_override, self.slug_override)
        return TemplateUpdate(self.git_url, self.ref or self.branch, self.path, *names, self.public)


class TemplateSecretRecord(ApiSchema):
    name: str = Field(examples=["OPENAI_API_KEY"])
    description: str = Field(examples=["Key of your model provider"])
    guide_url: str | None = Field(default=None, examples=["https://docs.example/keys"])
    guide_steps: Sequence[str] = Field(default=(), examples=[[]])
    required: bool = True


class PublicTemplateRecord(ApiSchema):
    """A published template, which is free. Fields named `partner` repeat those of `author`, for older clients."""

    template_id: str
    name: str = Field(examples=["Reader"])
    slug: str = Field(examples=["reader"])
    description: str
    long_description: None = None
    author_name: str = Field(examples=["Ada"])
    author_url: str | None = Field(examples=[None])
    author_logo_url: str | None = Field(examples=[None])
    partner_name: str = Field(examples=["Ada"])
    partner_url: str | None = Field(examples=[None])
    partner_logo_url: str | None = Field(examples=[None])
    category: str = Field(examples=["other"])
    tags: Sequence[str] = Field(examples=[["books"]])
    engine: str | None
    snapshot_cid: str
    required_secrets: Sequence[TemplateSecretRecord]
    included_skill_cids: Sequence[str] = Field(examples=[[]])
    default_vibe: str | None = Field(examples=[None])
    default_emoji: str | None = Field(examples=["🦉"])
    featured: bool
    sort_order: int = 0
    status: TemplateStatus = Field(examples=["published"])
    is_free: bool = True
    version: int = Field(examples=[1])
    git_url: str = Field(examples=[_URL])
    git_commit_sha: _CommitId
    created_at: Moment
    updated_at: Moment

    @classmethod
    def from_template(cls, template: Template) -> Self:
        return cls(**_template_fields(template))


class TemplateRecord(PublicTemplateRecord):
    """`readme` is text: what others wrote is never rendered here."""

    submitted_by: str
    git_ref: str | None = Field(examples=["main"])
    git_path: str | None = Field(examples=[None])


class TemplateDetailRecord(TemplateRecord):
    readme: str = Field(examples=["# Reader"])
    manifest: dict[str, Any] = Field(examples=[{"version": 1, "agent": {"name": "Reader"}}])
    files: int = Field(examples=[3])
    size: int

    @classmethod
    def from_version(cls, template: Template, version: TemplateVersion) -> Self:
        fields: dict[str, Any] = {**_template_fields(template), "manifest": dict(version.manifest)}
        return cls(**fields, readme=version.readme, files=version.files, size=version.size)


class PublicTemplateList(ApiSchema):
    templates: Sequence[PublicTemplateRecord]
    categories: Sequence[str] = Field(examples=[["other"]])
    next_cursor: str | None = Field(examples=[None])


class TemplateList(ApiSchema):
    templates: Sequence[TemplateRecord]
    categories: Sequence[str] = Field(examples=[["other"]])
    next_cursor: str | None = Field(examples=[None])


class TemplateDetail(ApiSchema):
    template: TemplateDetailRecord


class TemplateResponse(ApiSchema):
    success: bool = True
    template: TemplateDetailRecord


class ArchiveTemplateResponse(ApiSchema):
    success: bool = True
    message: str = "Template archived"


class TemplateFaultRecord(ApiSchema):
    path: str = Field(examples=["_docs"])
    message: str = Field(examples=["unknown field, ignored"])


class TemplateFileRecord(ApiSchema):
    path: str = Field(examples=["AGENTS.md"])
    size: int


class ValidateTemplateResponse(ApiSchema):
    """A repository that is valid; an invalid one gets 400 with `errors` in the same form."""

    valid: bool = True
    errors: Sequence[TemplateFaultRecord] = Field(default=(), examples=[[]])
    warnings: Sequence[TemplateFaultRecord]
    manifest: dict[str, Any] = Field(examples=[{"version": 1, "agent": {"name": "Reader"}}])
    readme: str = Field(examples=["# Reader"])
    files: Sequence[TemplateFileRecord]
    commit_sha: _CommitId

    @classmethod
    def from_inspected(cls, found: InspectedTemplate) -> Self:
        manifest = found.manifest.to_document() if found.manifest else {}
        return cls.model_validate({**vars(found), "manifest": manifest}, from_attributes=True)


class BranchList(ApiSchema):
    branches: Sequence[str] = Field(examples=[["main"]])
    default_branch: str | None = Field(examples=["main"])


class GitRefRecord(ApiSchema):
    name: str = Field(examples=["main"])
    commit_sha: _CommitId


class GitRefList(ApiSchema):
    branches: Sequence[GitRefRecord]
    tags: Sequence[GitRefRecord]
    default_branch: str | None = Field(examples=["main"])

    @classmethod
    def from_refs(cls, refs: RemoteRefs) -> Self:
        branches, tags = (
            [GitRefRecord(name=name, commit_sha=commit) for name, commit in found.items()]
            for found in (refs.branches, refs.tags)
        )
        return cls(branches=branches, tags=tags, default_branch=refs.default_branch)


def _template_fields(template: Template) -> dict[str, Any]:
    """Return the values of a record's fields, of which the public one takes fewer."""
    return {
        **vars(template),
        "template_id": template.id,
        "partner_name": template.author_name,
        "partner_url": template.author_url,
        "partner_logo_url": template.author_logo_url,
        "required_secrets": [{**secret, "description": secret.get("description") or ""} for secret in template.secrets],
        "included_skill_cids": template.skills,
        "default_vibe": template.vibe,
        "default_emoji": template.emoji,
        "git_commit_sha": template.commit_sha,
        "submitted_by": template.tenant_id,
    }


@router.get("/public-templates", responses={503: {}})
async def list_public_templates(query: Annotated[TemplateListQuery, Query()], templates: Service) -> PublicTemplateList:
    """List the published templates of all tenants, newest first. No credential is needed."""
    page, categories, following = await templates.list(None, query.to_filter(), query.cursor, query.limit)
    records = [PublicTemplateRecord.from_template(one) for one in page]
    return PublicTemplateList(templates=records, categories=categories, next_cursor=following)


@router.get("/templates")
async def list_templates(
    caller: TenantCaller, query: Annotated[OwnTemplateListQuery, Query()], templates: Service
) -> TemplateList:
    """List the tenant's templates, newest first, without archived ones."""
    page, categories, following = await templates.list(caller.tenant_id, query.to_filter(), query.cursor, query.limit)
    records = [TemplateRecord.from_template(one) for one in page]
    return TemplateList(templates=records, categories=categories, next_cursor=following)


@router.post("/templates", status_code=201, responses=_FETCH_ERRORS)
async def submit_template(caller: ServiceCaller, body: SubmitTemplateRequest, templates: Service) -> TemplateResponse:
    """Fetch a public Git repository, and publish what it holds as a template, or keep it as a draft."""
    submission = body.to_submission(is_public=body.public)
    stored = await templates.submit(caller.tenant_id, submission)
    return TemplateResponse(template=TemplateDetailRecord.from_version(*stored))


@router.post("/templates/validate", responses=_FETCH_ERRORS)
async def validate_template(
    caller: ServiceCaller, body: ValidateTemplateRequest, templates: Service
) -> ValidateTemplateResponse:
    """Check whether a public Git repository holds a valid template; nothing is stored."""
    found = await templates.validate(caller.tenant_id, body.to_submission())
    return ValidateTemplateResponse.from_inspected(found)


@router.post("/templates/branches", responses=_FETCH_ERRORS)
async def list_branches(caller: ServiceCaller, body: GitRepositoryRequest, templates: Service) -> BranchList:
    """List the branches of a public Git repository."""
    refs = await templates.list_refs(caller.tenant_id, body.git_url)
    return BranchList(branches=list(refs.branches), default_branch=refs.default_branch)


@router.post("/templates/refs", responses=_FETCH_ERRORS)
async def list_refs(caller: ServiceCaller, body: GitRepositoryRequest, templates: Service) -> GitRefList:
    """List the branches and tags of a public Git repository with their commits."""
    return GitRefList.from_refs(await templates.list_refs(caller.tenant_id, body.git_url))


@router.get("/templates/id/{templateId}")
async def get_template(caller: TenantCaller, template_id: TemplateId, templates: Service) -> TemplateDetail:
    """Return one of the tenant's templates, or a published one, by id."""
    found = await templates.get(caller.tenant_id, template_id)
    return TemplateDetail(template=TemplateDetailRecord.from_version(*found))


@router.get("/templates/{slug}")
async def get_template_by_slug(caller: TenantCaller, slug: Slug, templates: Service) -> TemplateDetail:
    """Return one of the tenant's templates, or a published one, by slug."""
    found = await templates.get_by_slug(caller.tenant_id, slug)
    return TemplateDetail(template=TemplateDetailRecord.from_version(*found))


@router.put("/templates/{templateId}", responses=_FETCH_ERRORS)
async def update_template(
    caller: ServiceCaller, template_id: TemplateId, body: UpdateTemplateRequest, templates: Service
) -> TemplateResponse:
    """Fetch the repository again and make what it holds the next version."""
    stored = await templates.update(caller.tenant_id, template_id, body.to_update())
    return TemplateResponse(template=TemplateDetailRecord.from_version(*stored))


@router.delete("/templates/{templateId}")
async def archive_template(
    caller: ServiceCaller, template_id: TemplateId, templates: Service
) -> ArchiveTemplateResponse:
    """Archive a template: it is not found any more, and its slug is free again."""
    await templates.archive(caller.tenant_id, template_id)
    return ArchiveTemplateResponse()
