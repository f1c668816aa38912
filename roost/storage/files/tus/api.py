"""HTTP API of resumable uploads (TUS 1.0.0).

Extensions: creation, creation-with-upload, creation-defer-length, expiration, termination. `Tus-Resumable` is
optional, because the storage clients do not send it.
"""

from collections.abc import Mapping
from email.utils import format_datetime
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Depends, HTTPException, Query, Request, Response
from fastapi.routing import APIRoute
from starlette.routing import Match
from starlette.types import Scope

from roost.core import ids
from roost.identity.authenticator import FilesWriter
from roost.storage.files.signed_urls.authenticator import SignedUploadGrant
from roost.storage.files.tus.model import (
    VERSION,
    InvalidTusUpload,
    NewTusUpload,
    TusUpload,
    UploadOffsetMismatch,
    parse_byte_count,
    parse_metadata_header,
)
from roost.storage.files.tus.service import TusUploadService
from roost.web import errors
from roost.web.schemas import BINARY, describe_body
from roost.web.service_registry import provide_service
from roost.web.url_rule import rule_of

_PART = "application/offset+octet-stream"
_CREATION_HEADERS = frozenset({b"upload-length", b"upload-defer-length", b"tus-resumable"})
_PART_DESCRIPTION = describe_body(_PART, BINARY) | {
    "parameters": [
        {"in": "header", "name": "Upload-Offset", "required": True, "schema": {"type": "integer", "minimum": 0}}
    ]
}


class _CreationRoute(APIRoute):
    """Route of requests with a header of TUS; other requests to the same path are forms."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        if any(name in _CREATION_HEADERS for name, _ in scope["headers"]):
            return super().matches(scope)
        return Match.NONE, {}


async def _check_tus_version(request: Request) -> None:
    if request.method != "OPTIONS" and request.headers.get("tus-resumable", VERSION) != VERSION:
        raise HTTPException(412)


Service = Annotated[TusUploadService, Depends(provide_service(TusUploadService))]
CidVersion = Annotated[str | None, Query(alias="X-Upload-Option-Cid-Version", max_length=32)]
creation_router = APIRouter(tags=["files"], route_class=_CreationRoute, dependencies=[Depends(_check_tus_version)])
router = APIRouter(tags=["files"], dependencies=[Depends(_check_tus_version)], responses={401: {}, 412: {}})


@creation_router.post("/v3/files", status_code=201, include_in_schema=False)
async def begin_upload(
    request: Request, caller: FilesWriter, transfers: Service, cid_version: CidVersion = None
) -> Response:
    """Create a resumable upload."""
    header, sent = _metadata(request)
    fields = {**({"cid_version": cid_version} if cid_version else {}), **sent}
    creation = NewTusUpload(caller.tenant_id, ids.new_id(), _length(request), fields, metadata=header)
    return await _create_upload(request, transfers, creation)


@creation_router.post("/v3/files/{file_id:uuid}", status_code=201, include_in_schema=False)
async def begin_signed_upload(request: Request, grant: SignedUploadGrant, transfers: Service) -> Response:
    """Create a resumable upload at a signed URL."""
    header, sent = _metadata(request)
    fields, length = grant.merge_fields(sent), _length(request)
    creation = NewTusUpload(grant.tenant_id, grant.file_id, length, fields, grant.max_size, grant.mime_types, header)
    return await _create_upload(request, transfers, creation)


@router.options("/v3/files", status_code=204)
async def describe_uploads() -> Response:
    """Return the supported TUS version and extensions."""
    return Response(status_code=204)


@router.head("/v3/files/{file_id:uuid}/{token}")
async def get_upload(file_id: UUID, token: str, transfers: Service) -> Response:
    """Return the offset of an upload."""
    transfer = await transfers.find(str(file_id), token)
    return Response(headers={**_progress_headers(transfer), **_creation_headers(transfer)})


@router.patch("/v3/files/{file_id:uuid}/{token}", status_code=204, openapi_extra=_PART_DESCRIPTION)
async def add_part(request: Request, file_id: UUID, token: str, transfers: Service) -> Response:
    """Append a part; the response to the last one has the CID."""
    if not _has_part(request):
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
    return Response(status_code=204)


async def _create_upload(request: Request, transfers: TusUploadService, creation: NewTusUpload) -> Response:
    has_part = _has_part(request)
    part_size = _part_size(request) if has_part else 0
    transfer, token = await transfers.begin(creation, part_size)
    if has_part or transfer.is_whole:
        transfer = await transfers.append(transfer.file_id, token, 0, request.stream(), part_size=part_size)
    address = f"{transfers.uploads_url}/v3/files/{transfer.file_id}/{token}"
    return Response(status_code=201, headers={"Location": address, **_progress_headers(transfer)})


def _offset_mismatch(request: Request, problem: UploadOffsetMismatch) -> Response:
    response = errors.problem_response(rule_of(request.scope).errors, problem)
    response.headers["Upload-Offset"] = str(problem.offset)
    if problem.cid is not None:
        response.headers["upload-cid"] = problem.cid
    return response


def _progress_headers(transfer: TusUpload) -> dict[str, str]:
    expires = format_datetime(transfer.expires_at, usegmt=True)
    headers = {"Upload-Offset": str(transfer.offset), "Upload-Expires": expires}
    return headers if transfer.cid is None else {**headers, "upload-cid": transfer.cid}


def _creation_headers(transfer: TusUpload) -> dict[str, str]:
    """Return the length and metadata headers of an upload."""
    length = {"Upload-Defer-Length": "1"} if transfer.length is None else {"Upload-Length": str(transfer.length)}
    return {**length, "Upload-Metadata": transfer.metadata} if transfer.metadata else length


def _has_part(request: Request) -> bool:
    return request.headers.get("content-type", "").partition(";")[0].strip().lower() == _PART


def _metadata(request: Request) -> tuple[str, Mapping[str, str]]:
    """Return `Upload-Metadata` as it was sent, and its fields."""
    header = request.headers.get("upload-metadata", "").strip()
    return header, parse_metadata_header(header)


def _part_size(request: Request) -> int:
    """Return the announced bytes of a part; zero if it comes in chunks."""
    return int(request.headers.get("content-length", 0))


def _length(request: Request, *, later: bool = False) -> int | None:
    """Parse `Upload-Length`; None if it is deferred or already known."""
    is_known, deferred = "upload-length" in request.headers, request.headers.get("upload-defer-length")
    if not later and deferred is not None and (is_known or deferred != "1"):
        raise InvalidTusUpload("Upload-Defer-Length must be 1, without Upload-Length")
    if not is_known and (later or deferred):
        return None
    return parse_byte_count(request.headers.get("upload-length"), "Upload-Length")
