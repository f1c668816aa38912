"""Authentication by a signed upload URL; other credentials of the request are ignored."""

from typing import Annotated
from uuid import UUID

from fastapi import Depends
from starlette.requests import Request

from roost.core.actor import Actor, ActorKind, current_actor
from roost.core.problem import NotFound
from roost.identity.auth_request import auth_request_of
from roost.storage.files.signed_urls.model import UploadGrant
from roost.storage.files.signed_urls.service import SignedUrlService
from roost.web.service_registry import provide_service
from roost.web.url_rule import HostKind

_SURFACES = frozenset({HostKind.STORAGE, HostKind.LOCAL})


async def upload_grant(
    request: Request, file_id: UUID, links: Annotated[SignedUrlService, Depends(provide_service(SignedUrlService))]
) -> UploadGrant:
    """Verify the signed URL of the request. Raises NotFound, SignedUrlRefused, SignedUrlExpired."""
    entry = auth_request_of(request)
    if entry.host.kind not in _SURFACES:
        raise NotFound
    grant = await links.verify_upload(entry.method, f"/v3/files/{file_id}", entry.query)
    current_actor.set(Actor(ActorKind.SIGNED_URL, grant.tenant_id))
    return grant


SignedUploadGrant = Annotated[UploadGrant, Depends(upload_grant)]
"""Caller with the signed URL of an upload."""
