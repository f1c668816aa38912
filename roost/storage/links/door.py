"""Who comes with a signed address. A credential that comes along is not looked at: the signature says it all."""

from typing import Annotated
from uuid import UUID

from fastapi import Depends
from starlette.requests import Request

from roost.core.problem import Missing
from roost.identity.door import Surface, entry_of
from roost.storage.links.model import Grant
from roost.storage.links.service import Links
from roost.web.provide import provide

_SURFACES = frozenset({Surface.STORAGE, Surface.LOCAL})


async def upload_grant(request: Request, file_id: UUID, links: Annotated[Links, Depends(provide(Links))]) -> Grant:
    """Raises LinkRefused, LinkExpired."""
    entry = entry_of(request)
    if entry.surface not in _SURFACES:
        raise Missing
    return await links.admit(entry.method, f"/v3/files/{file_id}", entry.query)


UploadGrant = Annotated[Grant, Depends(upload_grant)]
"""Whoever has the signed address of an upload."""
