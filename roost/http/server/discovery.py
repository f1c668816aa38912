"""What clients that know one address of the server need to find the others."""

from typing import Annotated

from fastapi import APIRouter, Depends
from pydantic import BaseModel

from roost.http.stack.address import HostAddresses
from roost.web.service_registry import provide_service


class DeploymentRecord(BaseModel):
    """`domain` is that of the addresses: `agents.D`, `{agentId}.agents.D`, `api.D`, `{name}.gateways.D`."""

    domain: str


router = APIRouter(tags=["health"])


@router.get("/.well-known/roost")
async def describe_deployment(
    addresses: Annotated[HostAddresses, Depends(provide_service(HostAddresses))],
) -> DeploymentRecord:
    """Return the domain of the server's addresses, which its own URLs show anyway."""
    return DeploymentRecord(domain=addresses.domain)
