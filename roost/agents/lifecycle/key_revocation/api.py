"""Revocation of keys over HTTP, beyond the storage API: with the gateway tokens that their holders have read."""

from typing import Annotated

from fastapi import APIRouter, Depends, Path

from roost.agents.lifecycle.key_revocation import schemas
from roost.agents.lifecycle.key_revocation.service import KeyRevocation
from roost.identity.authenticator import ServiceCaller
from roost.web.service_registry import provide_service

Service = Annotated[KeyRevocation, Depends(provide_service(KeyRevocation))]
KeyName = Annotated[str, Path(alias="key", max_length=100)]
router = APIRouter(prefix="/v0/keys/{key}", tags=["keys"])


@router.get("/token-reads")
async def list_token_reads(caller: ServiceCaller, key: KeyName, keys: Service) -> schemas.TokenReadList:
    """List the agents whose present gateway token a key, or a browser session of it, has read."""
    return schemas.token_read_list(await keys.list_reads(caller.tenant_id, key))


@router.post("/revoke")
async def revoke_key_and_tokens(
    caller: ServiceCaller, key: KeyName, body: schemas.RevokeKeyRequest, keys: Service
) -> schemas.TokenReadList:
    """Revoke a key, effective at once, and list the agents whose gateway token its holder has read.

    These tokens go on working unless `rotateTokens` replaces them; a key that is revoked already is no error.
    """
    return schemas.token_read_list(await keys.revoke(caller.tenant_id, key, rotates=body.rotate_tokens))
