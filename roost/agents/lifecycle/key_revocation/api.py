"""Revocation of keys over HTTP, beyond the storage API: with the gateway tokens that their holders have read."""

from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Depends, Path
from pydantic import Field, StrictBool

from roost.agents.lifecycle.key_revocation.service import AgentTokenRead, KeyRevocation
from roost.identity.authenticator import ServiceCaller
from roost.web.schemas import ApiSchema, Moment
from roost.web.service_registry import provide_service


class RevokeKeyRequest(ApiSchema):
    rotate_tokens: StrictBool = False
    """Whether the gateway tokens that its holder has read are replaced, too."""


class TokenReadRecord(ApiSchema):
    """`inSession` says whether a browser session of the key read the token, and not a program with the key itself."""

    agent_id: str
    agent_name: str = Field(examples=["Ada"])
    in_session: bool
    read_at: Moment


class TokenReadList(ApiSchema):
    """Agents whose gateway token the holder has read, with the first time."""

    agents: Sequence[TokenReadRecord]


def token_read_list(reads: Sequence[AgentTokenRead]) -> TokenReadList:
    return TokenReadList(agents=[TokenReadRecord(agent_name=name, **vars(read)) for name, read in reads])


Service = Annotated[KeyRevocation, Depends(provide_service(KeyRevocation))]
KeyName = Annotated[str, Path(alias="key", max_length=100)]
router = APIRouter(prefix="/v0/keys/{key}", tags=["keys"])


@router.get("/token-reads")
async def list_token_reads(caller: ServiceCaller, key: KeyName, keys: Service) -> TokenReadList:
    """List the agents whose present gateway token a key, or a browser session of it, has read."""
    return token_read_list(await keys.list_reads(caller.tenant_id, key))


@router.post("/revoke")
async def revoke_key_and_tokens(
    caller: ServiceCaller, key: KeyName, body: RevokeKeyRequest, keys: Service
) -> TokenReadList:
    """Revoke a key, effective at once, and list the agents whose gateway token its holder has read.

    These tokens go on working unless `rotateTokens` replaces them; a key that is revoked already is no error.
    """
    return token_read_list(await keys.revoke(caller.tenant_id, key, rotates=body.rotate_tokens))
