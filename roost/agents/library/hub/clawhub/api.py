"""HTTP API of ClawHub's protocol. Reading needs no credential, since all of it is published."""

import hashlib
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError

from roost.agents.library.hub.clawhub import schemas
from roost.agents.library.hub.clawhub.service import HubUploads, RegistryService, UploadedSkillFile
from roost.agents.library.hub.errors import HubFileNotFound
from roost.agents.library.hub.model import HubFilter, HubListing, HubReference, check_tag, parse_reference
from roost.agents.library.hub.publishing import HubPublisher
from roost.agents.library.hub.service import HubService
from roost.agents.library.skills.bundle import FILES_LIMIT, Bundle, BundleUpload, write_zip
from roost.core.machine.threads import run_in_daemon_thread
from roost.identity.authenticator import ServiceCaller
from roost.web.multipart import receive_form
from roost.web.responses import content_disposition
from roost.web.schemas import BINARY, BINARY_CONTENT, SlashText, describe_body
from roost.web.service_registry import provide_service

_ZIP = "application/zip"
_FORM = "multipart/form-data"
Hub = Annotated[HubService, Depends(provide_service(HubService))]
Publisher = Annotated[HubPublisher, Depends(provide_service(HubPublisher))]
Registry = Annotated[RegistryService, Depends(provide_service(RegistryService))]
Uploads = Annotated[HubUploads, Depends(provide_service(HubUploads))]
Slug = Annotated[str, SlashText, Path(max_length=128)]
_Handle = Annotated[str | None, Query(alias="ownerHandle", max_length=64)]
_Version = Annotated[str | None, Query(max_length=128)]
router = APIRouter(tags=["clawhub"])


async def _find_skill(
    hub: Hub, slug: Slug, owner: _Handle = None, version: _Version = None, tag: _Version = None
) -> HubListing:
    check_tag(tag)
    return await hub.get(parse_reference(slug, owner), version)


async def _find_by_query(
    hub: Hub,
    slug: Annotated[str, Query(max_length=256)],
    owner: _Handle = None,
    version: _Version = None,
    tag: _Version = None,
) -> HubListing:
    return await _find_skill(hub, slug, owner, version, tag)


Found = Annotated[HubListing, Depends(_find_skill)]
FoundByQuery = Annotated[HubListing, Depends(_find_by_query)]


@router.get("/.well-known/clawhub.json")
async def describe_registry(registry: Registry) -> schemas.RegistryAddressRecord:
    """Return the address of the registry for clients of ClawHub."""
    return schemas.RegistryAddressRecord(api_base=registry.origin, auth_base=registry.origin)


@router.get("/api/v1/search")
async def search_registry(
    query: Annotated[schemas.RegistrySearchQuery, Query()], hub: Hub
) -> schemas.RegistrySearchResponse:
    """Search published skills, best match first."""
    found = await hub.rank(query.q, query.limit)  # those of that name are first
    if query.mode == "exact":
        found = [one for one in found if one.skill.name == query.q.strip().lower()]
    results = [schemas.search_result(one, (len(found) - place) / len(found)) for place, one in enumerate(found)]
    return schemas.RegistrySearchResponse(results=results)


@router.get("/api/v1/skills")
async def list_registry_skills(
    query: Annotated[schemas.RegistryListQuery, Query()], hub: Hub
) -> schemas.RegistryListResponse:
    """List published skills."""
    chosen = HubFilter(prefix=query.prefix.lower() if query.prefix else None, sort=query.order)
    return schemas.list_response(*await hub.search(chosen, query.cursor, query.limit))


@router.post("/api/v1/skills/-/upload-url")
async def announce_file(
    caller: ServiceCaller, body: schemas.AnnounceFileRequest, uploads: Uploads, registry: Registry
) -> schemas.AnnounceFileResponse:
    """Return an address for the upload of one file of a publication."""
    ticket = await uploads.announce(caller.tenant_id, body.size)
    return schemas.AnnounceFileResponse(upload_url=f"{registry.origin}/api/v1/uploads/{ticket}", upload_ticket=ticket)


@router.post("/api/v1/uploads/{ticket}", openapi_extra=describe_body("application/octet-stream", BINARY))
async def receive_file(
    caller: ServiceCaller, ticket: Annotated[str, Path(max_length=64)], request: Request, uploads: Uploads
) -> schemas.ReceiveFileResponse:
    """Upload one file of a publication."""
    await uploads.receive(caller.tenant_id, ticket, await request.body())
    return schemas.ReceiveFileResponse(storage_id=ticket)


@router.post("/api/v1/skills", openapi_extra=schemas.PUBLISH_OPENAPI)
async def publish_bundle(
    caller: ServiceCaller, request: Request, registry: Registry, uploads: Uploads
) -> schemas.PublishBundleResponse:
    """Publish a version: a form with all files, or JSON about uploaded ones."""
    fields, bundle = await _receive_bundle(request, caller.tenant_id, uploads)
    owner, publication = fields.owner_handle, fields.publication()
    published = await registry.publish(caller.tenant_id, fields.slug, owner, bundle, publication)
    await uploads.remove(caller.tenant_id)
    skill, version = published.skill, published.version
    return schemas.PublishBundleResponse(
        skill_id=skill.id, version_id=version.id, slug=skill.name, version=version.version
    )


async def _receive_bundle(
    request: Request, tenant_id: str, uploads: HubUploads
) -> tuple[schemas.PublishBundleFields, Bundle]:
    content_type = request.headers.get("content-type", "")
    try:
        if content_type.startswith(_FORM):
            upload = BundleUpload()
            form = await receive_form(request.stream(), content_type, upload, FILES_LIMIT)
            fields = schemas.PublishBundleFields.model_validate_json(form.get("payload", ""))
            return fields, await run_in_daemon_thread(upload.finish)
        chosen = schemas.PublishBundleRequest.model_validate_json(await request.body())
        files = [UploadedSkillFile(one.path, one.storage_id, one.sha256) for one in chosen.files]
        return chosen, await uploads.collect(tenant_id, files)
    except ValidationError as error:
        faults = error.errors(include_url=False, include_input=False, include_context=False)
        raise RequestValidationError([{**fault, "loc": ("body", *fault["loc"])} for fault in faults]) from None


@router.get("/api/v1/skills/{slug}")
async def get_registry_skill(found: Found) -> schemas.RegistrySkillResponse:
    """Return a skill with its newest version and the verdict of the check."""
    return schemas.skill_response(found)


@router.delete("/api/v1/skills/{slug}")
async def withdraw_skill(
    caller: ServiceCaller, slug: Slug, registry: Registry, body: schemas.WithdrawSkillRequest | None = None
) -> schemas.RegistryChangeResponse:
    """Withdraw a skill of one's own."""
    named = parse_reference(slug, body.owner_handle if body else None)
    await registry.withdraw(caller.tenant_id, named.name, named.owner)
    return schemas.RegistryChangeResponse()


@router.get("/api/v1/skills/{slug}/versions")
async def list_registry_versions(hub: Hub, slug: Slug, owner: _Handle = None) -> schemas.RegistryVersionList:
    """List the versions of a skill, last published first."""
    _, versions = await hub.get_detail(parse_reference(slug, owner))
    return schemas.RegistryVersionList(items=[schemas.latest_record(one) for one in versions])


@router.get("/api/v1/skills/{slug}/versions/{version}")
async def get_registry_version(
    hub: Hub, slug: Slug, version: Annotated[str, Path(max_length=128)], owner: _Handle = None
) -> schemas.RegistryVersionResponse:
    """Return a version with the list of its files."""
    found = await hub.get(parse_reference(slug, owner), version)
    bundle = await hub.read_bundle(found.version)
    files = [
        schemas.RegistryVersionFileRecord(
            path=path, size=len(file.content), sha256=hashlib.sha256(file.content).hexdigest()
        )
        for path, file in bundle.files.items()
    ]
    return schemas.version_response(found, files)


@router.get("/api/v1/skills/{slug}/file", response_class=Response, responses={200: {"content": BINARY_CONTENT}})
async def get_registry_file(
    hub: Hub, found: Found, path: Annotated[str, Query(min_length=1, max_length=500)]
) -> Response:
    """Return one file of a version."""
    file = (await hub.read_bundle(found.version)).files.get(path)
    if file is None:
        raise HubFileNotFound
    headers = {"Content-Disposition": content_disposition("attachment", path.rpartition("/")[2])}
    return Response(file.content, headers=headers, media_type="application/octet-stream")


@router.get("/api/v1/skills/{slug}/scan")
async def get_scan(found: Found) -> schemas.ModerationResponse:
    """Return the verdict of the check of a version, with what was found."""
    return schemas.ModerationResponse(moderation=schemas.describe_moderation(found.version))


@router.get("/api/v1/skills/{slug}/moderation")
async def get_moderation(found: Found) -> schemas.ModerationResponse:
    """Return the verdict of the check of a version, with what was found."""
    return schemas.ModerationResponse(moderation=schemas.describe_moderation(found.version))


@router.get(
    "/api/v1/download", response_class=Response, responses={200: {"content": {_ZIP: {"schema": BINARY}}}, 404: {}}
)
async def download_skill(hub: Hub, found: FoundByQuery) -> Response:
    """Return the files of a version, which are verified by its CID, as a zip archive."""
    content = await run_in_daemon_thread(partial(write_zip, await hub.read_bundle(found.version)))
    name = f"{found.skill.name}-{found.version.version}.zip"
    headers = {"Content-Disposition": content_disposition("attachment", name), "X-Skill-Cid": found.version.cid}
    return Response(content, headers=headers, media_type=_ZIP)


@router.get("/api/v1/resolve", responses={404: {}})
async def resolve_version(
    hub: Hub, found: FoundByQuery, fingerprint: Annotated[str, Query(alias="hash", max_length=128)]
) -> schemas.ResolveVersionResponse:
    """Return the version whose files have that fingerprint, and the newest one."""
    match = await hub.find_by_fingerprint(found.skill, fingerprint.lower())
    latest = schemas.latest_record(found.version)
    return schemas.ResolveVersionResponse(match=match and schemas.latest_record(match), latest_version=latest)


@router.get("/api/v1/whoami")
async def get_publisher(caller: ServiceCaller, publisher: Publisher) -> schemas.WhoamiResponse:
    """Return the name under which the caller publishes."""
    owner = await publisher.get_owner(caller.tenant_id)
    return schemas.WhoamiResponse(user=schemas.RegistryUserRecord(handle=owner.handle, display_name=owner.handle))


@router.post("/api/cli/telemetry/install")
async def report_install(
    caller: ServiceCaller, body: schemas.ReportInstallRequest, hub: Hub
) -> schemas.RegistryChangeResponse:
    """Count an installation by a client, once for each tenant."""
    await hub.count_install(caller.tenant_id, HubReference(body.slug, body.owner_handle))
    return schemas.RegistryChangeResponse()
