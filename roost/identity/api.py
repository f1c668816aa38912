"""API keys over HTTP, under the paths of old clients and new ones. The answers are bare, without `data`."""

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
@router.post("/v3/api_keys")
@router.post("/users/generateApiKey")
async def create_key(caller: OrgWriter, body: schemas.CreateKeyRequest, keys: Service) -> schemas.IssuedKeyRecord:
    """Make a key with scopes that the caller has itself; token and secret are shown this once."""
    return schemas.issued_key_record(await keys.mint(caller, body.key_name, body.permissions.scopes(), body.max_uses))


@router.get("/v3/pinata/keys")
@router.get("/v3/api_keys")
@router.get("/users/apiKeys")
async def list_keys(
    caller: OrgReader,
    keys: Service,
    revoked: bool | None = None,
    limited: _Limited = None,
    exhausted: bool | None = None,
    name: Text | None = None,
    offset: _Offset = 0,
) -> schemas.KeyList:
    """The tenant's keys, the newest first, at most 100 from `offset` on; `count` is how many there are."""
    return schemas.key_list(*await keys.list(caller.tenant_id, KeyFilter(revoked, limited, exhausted, name), offset))


@router.put("/v3/pinata/keys/{key}")
@router.delete("/v3/pinata/keys/{key}")
@router.put("/v3/api_keys/{key}")
@router.delete("/v3/api_keys/{key}")
async def revoke_key(caller: OrgWriter, key: KeyName, keys: Service) -> Literal["Revoked"]:
    """Revoke a key; it is refused at once."""
    await keys.revoke(caller.tenant_id, key)
    return "Revoked"


@router.put("/users/revokeApiKey")
async def revoke_named_key(caller: OrgWriter, body: schemas.RevokeKeyRequest, keys: Service) -> Literal["Revoked"]:
    """Revoke a key that the body names."""
    await keys.revoke(caller.tenant_id, body.api_key)
    return "Revoked"
