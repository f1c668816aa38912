"""Uploads in parts over HTTP (TUS 1.0.0: creation, creation-with-upload, creation-defer-length, expiration,
termination), as the protocol has it and as the storage clients speak it: these do not say `Tus-Resumable`.
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
from roost.storage.tus.model import NewTusUpload, TusUpload, metadata, number
from roost.storage.tus.service import TusUploadService
from roost.web import errors
from roost.web.service_registry import provide_service
from roost.web.url_rule import rule_of

_VERSION = "1.0.0"
_PART = "application/offset+octet-stream"
_LENGTHS = frozenset({b"upload-length", b"upload-defer-length"})
_RESUMABLE = {"Tus-Resumable": _VERSION}
_ABILITIES = {
    **_RESUMABLE,
    "Tus-Version": _VERSION,
    "Tus-Extension": "creation,creation-with-upload,creation-defer-length,expiration,termination",
}


class _CreationRoute(APIRoute):
    """Only for requests that say how long the upload will be: the others to the same path bring forms."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        if any(name in _LENGTHS for name, _ in scope["headers"]):
            return super().matches(scope)
        return Match.NONE, {}


def _speaks_tus(request: Request) -> None:
    if request.headers.get("tus-resumable", _VERSION) != _VERSION:
        raise HTTPException(412, headers=_ABILITIES)


Service = Annotated[TusUploadService, Depends(provide_service(TusUploadService))]
CidVersion = Annotated[str | None, Query(alias="X-Upload-Option-Cid-Version", max_length=32)]
openings = APIRouter(tags=["files"], route_class=_CreationRoute, dependencies=[Depends(_speaks_tus)])
router = APIRouter(tags=["files"], dependencies=[Depends(_speaks_tus)])


@openings.post("/v3/files", status_code=201, include_in_schema=False)
async def begin_upload(
    request: Request, caller: FilesWriter, transfers: Service, cid_version: CidVersion = None
) -> Response:
    """Begin an upload in parts."""
    fields = {**({"cid_version": cid_version} if cid_version else {}), **_metadata(request)}
    return await _begun(request, transfers, NewTusUpload(caller.tenant_id, ids.new_id(), _length(request), fields))


@openings.post("/v3/files/{file_id:uuid}", status_code=201, include_in_schema=False)
async def begin_signed_upload(request: Request, grant: SignedUploadGrant, transfers: Service) -> Response:
    """Begin an upload in parts at a signed address."""
    fields, length = grant.over(_metadata(request)), _length(request)
    opening = NewTusUpload(grant.tenant_id, grant.file_id, length, fields, grant.max_size, grant.mime_types)
    return await _begun(request, transfers, opening)


@router.options("/v3/files", status_code=204)
async def describe_uploads() -> Response:
    """Which parts of the protocol are spoken."""
    return Response(status_code=204, headers=_ABILITIES)


@router.head("/v3/files/{file_id:uuid}/{token}")
async def get_upload(file_id: UUID, token: str, transfers: Service) -> Response:
    """How far an upload is."""
    transfer = await transfers.find(str(file_id), token)
    return Response(headers={**_told(transfer), **_described(transfer), "Cache-Control": "no-store"})


@router.patch("/v3/files/{file_id:uuid}/{token}", status_code=204)
async def add_part(request: Request, file_id: UUID, token: str, transfers: Service) -> Response:
    """Add a part; the last one answers with the CID."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != _PART:
        raise HTTPException(415)
    offset = number(request.headers.get("upload-offset"), "Upload-Offset")
    try:
        transfer = await transfers.append(str(file_id), token, offset, request.stream(), _length(request, later=True))
    except UploadOffsetMismatch as problem:
        return _out_of_step(request, problem)
    return Response(status_code=204, headers=_told(transfer))


@router.delete("/v3/files/{file_id:uuid}/{token}", status_code=204)
async def end_upload(file_id: UUID, token: str, transfers: Service) -> Response:
    """End an upload; what came of it is gone."""
    await transfers.end(str(file_id), token)
    return Response(status_code=204, headers=_RESUMABLE)


async def _begun(request: Request, transfers: TusUploadService, opening: NewTusUpload) -> Response:
    transfer, token = await transfers.begin(opening)
    if request.headers.get("content-type") == _PART or transfer.is_whole:
        transfer = await transfers.append(transfer.file_id, token, 0, request.stream())
    address = f"{transfers.uploads_url}/v3/files/{transfer.file_id}/{token}"
    return Response(status_code=201, headers={"Location": address, **_told(transfer)})


def _out_of_step(request: Request, problem: UploadOffsetMismatch) -> Response:
    answer = errors.problem_response(rule_of(request.scope).errors, problem)
    answer.headers.update({**_RESUMABLE, "Upload-Offset": str(problem.offset)})
    if problem.cid is not None:
        answer.headers["upload-cid"] = problem.cid
    return answer


def _told(transfer: TusUpload) -> dict[str, str]:
    expires = format_datetime(transfer.expires_at, usegmt=True)
    told = {**_RESUMABLE, "Upload-Offset": str(transfer.offset), "Upload-Expires": expires}
    return told if transfer.cid is None else {**told, "upload-cid": transfer.cid}


def _described(transfer: TusUpload) -> dict[str, str]:
    """What the upload began with."""
    pairs = [f"{key} {base64.b64encode(value.encode()).decode()}" for key, value in transfer.fields.items()]
    length = {"Upload-Defer-Length": "1"} if transfer.length is None else {"Upload-Length": str(transfer.length)}
    return {**length, "Upload-Metadata": ",".join(pairs)}


def _metadata(request: Request) -> dict[str, str]:
    return dict(metadata(request.headers.get("upload-metadata", "")))


def _length(request: Request, *, later: bool = False) -> int | None:
    """None when it is told later, or was told before."""
    if "upload-length" not in request.headers and (later or request.headers.get("upload-defer-length") == "1"):
        return None
    return number(request.headers.get("upload-length"), "Upload-Length")
