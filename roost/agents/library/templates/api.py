"""Templates of a tenant, and the public marketplace (contract, Templates)."""

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Query

from roost.agents.library.templates import schemas
from roost.agents.library.templates.service import TemplateService
from roost.identity.authenticator import ServiceCaller, TenantCaller
from roost.web.service_registry import provide_service

Service = Annotated[TemplateService, Depends(provide_service(TemplateService))]
TemplateId = Annotated[str, Path(alias="templateId", max_length=100)]
Slug = Annotated[str, Path(max_length=100)]
router = APIRouter(prefix="/v0", tags=["templates"])
_FETCH_ERRORS: dict[int | str, dict[str, Any]] = {504: {}}


@router.get("/public-templates", responses={503: {}})
async def list_public_templates(
    query: Annotated[schemas.TemplateListQuery, Query()], templates: Service
) -> schemas.PublicTemplateList:
    """List the published templates of all tenants, newest first. No credential is needed."""
    page, categories, following = await templates.list(None, query.to_filter(), query.cursor, query.limit)
    records = [schemas.PublicTemplateRecord.from_template(one) for one in page]
    return schemas.PublicTemplateList(templates=records, categories=categories, next_cursor=following)


@router.get("/templates")
async def list_templates(
    caller: TenantCaller, query: Annotated[schemas.OwnTemplateListQuery, Query()], templates: Service
) -> schemas.TemplateList:
    """List the tenant's templates, newest first, without archived ones."""
    page, categories, following = await templates.list(caller.tenant_id, query.to_filter(), query.cursor, query.limit)
    records = [schemas.TemplateRecord.from_template(one) for one in page]
    return schemas.TemplateList(templates=records, categories=categories, next_cursor=following)


@router.post("/templates", status_code=201, responses=_FETCH_ERRORS)
async def submit_template(
    caller: ServiceCaller, body: schemas.SubmitTemplateRequest, templates: Service
) -> schemas.TemplateResponse:
    """Fetch a public Git repository, and publish what it holds as a template, or keep it as a draft."""
    submission = body.to_submission(is_public=body.public)
    stored = await templates.submit(caller.tenant_id, submission)
    return schemas.TemplateResponse(template=schemas.TemplateDetailRecord.from_version(*stored))


@router.post("/templates/validate", responses=_FETCH_ERRORS)
async def validate_template(
    caller: ServiceCaller, body: schemas.ValidateTemplateRequest, templates: Service
) -> schemas.ValidateTemplateResponse:
    """Check whether a public Git repository holds a valid template; nothing is stored."""
    found = await templates.validate(caller.tenant_id, body.to_submission())
    return schemas.ValidateTemplateResponse.from_inspected(found)


@router.post("/templates/branches", responses=_FETCH_ERRORS)
async def list_branches(
    caller: ServiceCaller, body: schemas.GitRepositoryRequest, templates: Service
) -> schemas.BranchList:
    """List the branches of a public Git repository."""
    refs = await templates.list_refs(caller.tenant_id, body.git_url)
    return schemas.BranchList(branches=list(refs.branches), default_branch=refs.default_branch)


@router.post("/templates/refs", responses=_FETCH_ERRORS)
async def list_refs(
    caller: ServiceCaller, body: schemas.GitRepositoryRequest, templates: Service
) -> schemas.GitRefList:
    """List the branches and tags of a public Git repository with their commits."""
    return schemas.GitRefList.from_refs(await templates.list_refs(caller.tenant_id, body.git_url))


@router.get("/templates/id/{templateId}")
async def get_template(caller: TenantCaller, template_id: TemplateId, templates: Service) -> schemas.TemplateDetail:
    """Return one of the tenant's templates, or a published one, by id."""
    found = await templates.get(caller.tenant_id, template_id)
    return schemas.TemplateDetail(template=schemas.TemplateDetailRecord.from_version(*found))


@router.get("/templates/{slug}")
async def get_template_by_slug(caller: TenantCaller, slug: Slug, templates: Service) -> schemas.TemplateDetail:
    """Return one of the tenant's templates, or a published one, by slug."""
    found = await templates.get_by_slug(caller.tenant_id, slug)
    return schemas.TemplateDetail(template=schemas.TemplateDetailRecord.from_version(*found))


@router.put("/templates/{templateId}", responses=_FETCH_ERRORS)
async def update_template(
    caller: ServiceCaller, template_id: TemplateId, body: schemas.UpdateTemplateRequest, templates: Service
) -> schemas.TemplateResponse:
    """Fetch the repository again and make what it holds the next version."""
    stored = await templates.update(caller.tenant_id, template_id, body.to_update())
    return schemas.TemplateResponse(template=schemas.TemplateDetailRecord.from_version(*stored))


@router.delete("/templates/{templateId}")
async def archive_template(
    caller: ServiceCaller, template_id: TemplateId, templates: Service
) -> schemas.ArchiveTemplateResponse:
    """Archive a template: it is not found any more, and its slug is free again."""
    await templates.archive(caller.tenant_id, template_id)
    return schemas.ArchiveTemplateResponse()
