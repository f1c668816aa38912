"""API keys over HTTP. Responses have no `data` envelope."""

from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Path, Query

from roost.identity import schemas
from roost.identity.api_keys import ApiKeys
from roost.identity.authenticator import OrgReader, OrgWriter
from roost.identity.model import KeyFilter
from roost.web.schemas import Text
from roost.web.service_registry import provide_service

Service = Annotated[ApiKeys, Depends(provide_service(ApiKeys))]
KeyName = Annotated[str, Path(alias="key", max_length=100)]
_Limited = Annotated[bool | None, Query(alias="limitedUse")]
_Offset = Annotated[int, Query(ge=0, le=1_000_000)]
router = APIRouter(tags=["keys"])


@router.post("/v3/pinata/keys")
async def create_key(caller: OrgWriter, body: schemas.CreateKeyRequest, keys: Service) -> schemas.IssuedKeyRecord:
    """Create a key with scopes that the caller has itself; token and secret are shown only now."""
    return schemas.issued_key_record(await keys.mint(caller, body.key_name, body.permissions.scopes(), body.max_uses))


@router.get("/v3/pinata/keys")
async def list_keys(
    caller: OrgReader,
    keys: Service,
    revoked: bool | None = None,
    limited: _Limited = None,
    exhausted: bool | None = None,
    name: Text | None = None,
    offset: _Offset = 0,
) -> schemas.KeyList:
    """List keys, newest first, at most 100 from `offset` on; `count` is the number of all."""
    return schemas.key_list(*await keys.list(caller.tenant_id, KeyFilter(revoked, limited, exhausted, name), offset))


@router.put("/v3/pinata/keys/{key}", name="revoke_key_legacy")
@router.delete("/v3/pinata/keys/{key}")
async def revoke_key(caller: OrgWriter, key: KeyName, keys: Service) -> Literal["Revoked"]:
    """Revoke a key, effective at once."""
    await keys.revoke(caller.tenant_id, key)
    return "Revoked"
