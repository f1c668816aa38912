"""Path routes of an agent (contract: Routes and domains)."""

from typing import Annotated

from fastapi import APIRouter, Depends

from roost.agents.network.routes import schemas
from roost.agents.network.routes.service import RouteService
from roost.identity.authenticator import AgentCaller, AgentId
from roost.web.service_registry import provide_service

Service = Annotated[RouteService, Depends(provide_service(RouteService))]
router = APIRouter(prefix="/v0/agents/{agentId}/port-forwarding", tags=["routes"])


@router.get("")
async def list_routes(_: AgentCaller, agent_id: AgentId, routes: Service) -> schemas.RouteList:
    """List the routes, longest prefix first."""
    return schemas.RouteList(mappings=[schemas.RouteRecord.from_route(one) for one in await routes.list(agent_id)])


@router.put("")
async def replace_routes(
    _: AgentCaller, agent_id: AgentId, body: schemas.ReplaceRoutesRequest, routes: Service
) -> schemas.RouteListResponse:
    """Replace all routes at once."""
    replaced = await routes.replace(agent_id, [item.to_route(index) for index, item in enumerate(body.mappings)])
    return schemas.RouteListResponse(mappings=[schemas.RouteRecord.from_route(one) for one in replaced])
