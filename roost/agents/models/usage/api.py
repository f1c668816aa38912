"""Usage of models by a tenant and by each agent."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query

from roost.agents.models.gateway.service import ModelGateway
from roost.agents.models.usage import schemas
from roost.agents.models.usage.model import ROWS_LIMIT
from roost.identity.authenticator import AgentId, KnownCaller, ServiceCaller
from roost.web.service_registry import provide_service

Models = Annotated[ModelGateway, Depends(provide_service(ModelGateway))]
router = APIRouter(tags=["usage"])


@router.get("/v0/usage")
async def show_usage(
    caller: ServiceCaller, request: Annotated[schemas.UsageQuery, Query()], models: Models
) -> schemas.UsageReport:
    """Sum the requests and tokens of models by day, model and agent, also of deleted agents."""
    period = request.to_period()
    summary = await models.sum_usage(caller.tenant_id, request.agent_id, period.first, period.last, ROWS_LIMIT)
    return schemas.UsageReport.from_summary(period, summary)


@router.get("/v0/agents/{agentId}/usage")
async def show_agent_usage(
    caller: KnownCaller, agent_id: AgentId, request: Annotated[schemas.AgentUsageQuery, Query()], models: Models
) -> schemas.UsageReport:
    """Sum the requests and tokens of one agent by day and model."""
    period = request.to_period()
    summary = await models.sum_usage(caller.tenant_id, agent_id, period.first, period.last, ROWS_LIMIT)
    return schemas.UsageReport.from_summary(period, summary)
