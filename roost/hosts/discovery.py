"""What clients that know one address of the server need to find the others."""

from fastapi import APIRouter
from pydantic import BaseModel

from roost.hosts.address import HostAddresses


class DeploymentRecord(BaseModel):
    """`domain` is that of the addresses: `agents.D`, `{agentId}.agents.D`, `api.D`, `{name}.gateways.D`."""

    domain: str


def discovery_router(addresses: HostAddresses) -> APIRouter:
    routes = APIRouter(tags=["health"])

    @routes.get("/.well-known/roost")
    async def describe_deployment() -> DeploymentRecord:
        """Return the domain of the server's addresses, which its own URLs show anyway."""
        return DeploymentRecord(domain=addresses.domain)

    return routes
