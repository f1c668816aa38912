"""HTTP API of resumable uploads (TUS 1.0.0).

Extensions: creation, creation-with-upload, creation-defer-length, expiration, termination. `Tus-Resumable` is
optional, because the storage clients do not send it.
"""

import base64
from email.utils import format_datetime
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Depends, HTTPException, Query, Request, Response
from fastapi.routing import APIRoute
from starlette.routing import Match
from starlette.types import Scope

from roost.core import ids
from roost.identity.authenticator import FilesWriter
from roost.storage.signed_urls.authenticator import SignedUploadGrant
from roost.storage.tus.errors import UploadOffsetMismatch
from roost.storage.tus.model import NewTusUpload, TusUpload, parse_byte_count, parse_metadata_header
from roost.storage.tus.service import TusUploadService
from roost.web import errors
from roost.web.schemas import BINARY, describe_body
from roost.web.service_registry import provide_service
from roost.web.url_rule import rule_of

_VERSION = "1.0.0"
_PART = "application/offset+octet-stream"
_LENGTHS = frozenset({b"upload-length", b"upload-defer-length"})
_PART_DESCRIPTION = describe_body(_PART, BINARY) | {
    "parameters": [
        {"in": "header", "name": "Upload-Offset", "required": True, "schema": {"type": "integer", "minimum": 0}}
    ]
}
_RESUMABLE = {"Tus-Resumable": _VERSION}
_CAPABILITIES = {
    **_RESUMABLE,
    "Tus-Version": _VERSION,
    "Tus-Extension": "creation,creation-with-upload,creation-defer-length,expiration,termination",
}


class _CreationRoute(APIRoute):
    """Route of requests with a TUS length header; other requests to the same path are forms."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        if any(name in _LENGTHS for name, _ in scope["headers"]):
            return super().matches(scope)
        return Match.NONE, {}


async def _check_tus_version(request: Request) -> None:
    if request.headers.get("tus-resumable", _VERSION) != _VERSION:
        raise HTTPException(412, headers=_CAPABILITIES)


Service = Annotated[TusUploadService, Depends(provide_service(TusUploadService))]
CidVersion = Annotated[str | None, Query(alias="X-Upload-Option-Cid-Version", max_length=32)]
creation_router = APIRouter(tags=["files"], route_class=_CreationRoute, dependencies=[Depends(_check_tus_version)])
router = APIRouter(tags=["files"], dependencies=[Depends(_check_tus_version)], responses={401: {}, 412: {}})


@creation_router.post("/v3/files", status_code=201, include_in_schema=False)
async def begin_upload(
    request: Request, caller: FilesWriter, transfers: Service, cid_version: CidVersion = None
) -> Response:
    """Create a resumable upload."""
    fields = {**({"cid_version": cid_version} if cid_version else {}), **_metadata(request)}
    return await _create_upload(
        request, transfers, NewTusUpload(caller.tenant_id, ids.new_id(), _length(request), fields)
    )


@creation_router.post("/v3/files/{file_id:uuid}", status_code=201, include_in_schema=False)
async def begin_signed_upload(request: Request, grant: SignedUploadGrant, transfers: Service) -> Response:
    """Create a resumable upload at a signed URL."""
    fields, length = grant.merge_fields(_metadata(request)), _length(request)
    creation = NewTusUpload(grant.tenant_id, grant.file_id, length, fields, grant.max_size, grant.mime_types)
    return await _create_upload(request, transfers, creation)


@router.options("/v3/files", status_code=204)
async def describe_uploads() -> Response:
    """Return the supported TUS version and extensions."""
    return Response(status_code=204, headers=_CAPABILITIES)


@router.head("/v3/files/{file_id:uuid}/{token}")
async def get_upload(file_id: UUID, token: str, transfers: Service) -> Response:
    """Return the offset of an upload."""
    transfer = await transfers.find(str(file_id), token)
    return Response(headers={**_progress_headers(transfer), **_creation_headers(transfer), "Cache-Control": "no-store"})


@router.patch("/v3/files/{file_id:uuid}/{token}", status_code=204, openapi_extra=_PART_DESCRIPTION)
async def add_part(request: Request, file_id: UUID, token: str, transfers: Service) -> Response:
    """Append a part; the response to the last one has the CID."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != _PART:
        raise HTTPException(415)
    offset = parse_byte_count(request.headers.get("upload-offset"), "Upload-Offset")
    try:
        transfer = await transfers.append(
            str(file_id), token, offset, request.stream(), _length(request, later=True), _part_size(request)
        )
    except UploadOffsetMismatch as problem:
        return _offset_mismatch(request, problem)
    return Response(status_code=204, headers=_progress_headers(transfer))


@router.delete("/v3/files/{file_id:uuid}/{token}", status_code=204)
async def end_upload(file_id: UUID, token: str, transfers: Service) -> Response:
    """Delete an unfinished upload."""
    await transfers.terminate(str(file_id), token)
    return Response(status_code=204, headers=_RESUMABLE)


async def _create_upload(request: Request, transfers: TusUploadService, creation: NewTusUpload) -> Response:
    has_part = request.headers.get("content-type") == _PART
    part_size = _part_size(request) if has_part else 0
    transfer, token = await transfers.begin(creation, part_size)
    if has_part or transfer.is_whole:
        transfer = await transfers.append(transfer.file_id, token, 0, request.stream(), part_size=part_size)
    address = f"{transfers.uploads_url}/v3/files/{transfer.file_id}/{token}"
    return Response(status_code=201, headers={"Location": address, **_progress_headers(transfer)})


def _offset_mismatch(request: Request, problem: UploadOffsetMismatch) -> Response:
    response = errors.problem_response(rule_of(request.scope).errors, problem)
    response.headers.update({**_RESUMABLE, "Upload-Offset": str(problem.offset)})
    if problem.cid is not None:
        response.headers["upload-cid"] = problem.cid
    return response


def _progress_headers(transfer: TusUpload) -> dict[str, str]:
    expires = format_datetime(transfer.expires_at, usegmt=True)
    headers = {**_RESUMABLE, "Upload-Offset": str(transfer.offset), "Upload-Expires": expires}
    return headers if transfer.cid is None else {**headers, "upload-cid": transfer.cid}


def _creation_headers(transfer: TusUpload) -> dict[str, str]:
    """Return the length and metadata headers of an upload."""
    pairs = [f"{key} {base64.b64encode(value.encode()).decode()}" for key, value in transfer.fields.items()]
    length = {"Upload-Defer-Length": "1"} if transfer.length is None else {"Upload-Length": str(transfer.length)}
    return {**length, "Upload-Metadata": ",".join(pairs)}


def _metadata(request: Request) -> dict[str, str]:
    return dict(parse_metadata_header(request.headers.get("upload-metadata", "")))


def _part_size(request: Request) -> int:
    """Return the announced bytes of a part; zero if it comes in chunks."""
    return int(request.headers.get("content-length", 0))


def _length(request: Request, *, later: bool = False) -> int | None:
    """Parse `Upload-Length`; None if it is deferred or already known."""
    if "upload-length" not in request.headers and (later or request.headers.get("upload-defer-length") == "1"):
        return None
    return parse_byte_count(request.headers.get("upload-length"), "Upload-Length")
