"""Usage of models by a tenant and by each agent."""

from collections.abc import Sequence
from dataclasses import asdict
from datetime import date
from typing import Annotated, Self

from fastapi import APIRouter, Depends, Query
from pydantic import BeforeValidator, Field

from roost.agents.models.gateway.model import UsageCount, UsageSummary
from roost.agents.models.gateway.service import ModelGateway
from roost.agents.models.usage import model
from roost.agents.models.usage.model import ROWS_LIMIT, UsagePeriod
from roost.core import clock
from roost.identity.authenticator import AgentId, KnownCaller, ServiceCaller
from roost.web.schemas import ApiSchema, Text
from roost.web.service_registry import provide_service

Models = Annotated[ModelGateway, Depends(provide_service(ModelGateway))]
router = APIRouter(tags=["usage"])


def _parse_day(text: object) -> object:
    try:
        return date.fromisoformat(str(text))
    except ValueError:
        raise ValueError("must be a date like 2026-01-31") from None


_Day = Annotated[date, BeforeValidator(_parse_day)]


class AgentUsageQuery(ApiSchema):
    """Days in UTC, both included, at most 366; by default the last 30."""

    first: Annotated[_Day | None, Field(alias="from")] = None
    last: Annotated[_Day | None, Field(alias="to")] = None

    def to_period(self) -> UsagePeriod:
        """Return the period. Raises InvalidUsagePeriod."""
        return model.parse_period(self.first, self.last, clock.utc_now().date())


class UsageQuery(AgentUsageQuery):
    agent_id: Annotated[Text | None, Field(max_length=64, description="Only usage of this agent.")] = None


class UsageCountRecord(ApiSchema):
    """Requests to models, and their tokens as the models count them."""

    requests: int
    prompt_tokens: int
    completion_tokens: int


class DayUsageRecord(UsageCountRecord):
    day: date


class ModelUsageRecord(UsageCountRecord):
    model: str = Field(examples=["openai/gpt-5"])


class AgentUsageRecord(UsageCountRecord):
    """Usage of one agent, which may be deleted; null is the tenant itself, with a service key."""

    agent_id: str | None


class UsageReport(ApiSchema):
    """Usage of models: every day of the period, and at most 100 models and agents, the largest first."""

    first: Annotated[date, Field(alias="from")]
    last: Annotated[date, Field(alias="to")]
    total: UsageCountRecord
    days: Sequence[DayUsageRecord]
    models: Sequence[ModelUsageRecord]
    agents: Sequence[AgentUsageRecord]

    @classmethod
    def from_summary(cls, period: UsagePeriod, summary: UsageSummary) -> Self:
        none = UsageCount()
        return cls(
            first=period.first,
            last=period.last,
            total=UsageCountRecord(**asdict(sum(summary.days.values(), none))),
            days=[
                DayUsageRecord(day=date.fromisoformat(day), **asdict(summary.days.get(day, none)))
                for day in period.days
            ],
            models=[ModelUsageRecord(model=name, **asdict(count)) for name, count in summary.models.items()],
            agents=[AgentUsageRecord(agent_id=name or None, **asdict(count)) for name, count in summary.agents.items()],
        )


@router.get("/v0/usage")
async def show_usage(caller: ServiceCaller, request: Annotated[UsageQuery, Query()], models: Models) -> UsageReport:
    """Sum the requests and tokens of models by day, model and agent, also of deleted agents."""
    period = request.to_period()
    summary = await models.sum_usage(caller.tenant_id, request.agent_id, period.first, period.last, ROWS_LIMIT)
    return UsageReport.from_summary(period, summary)


@router.get("/v0/agents/{agentId}/usage")
async def show_agent_usage(
    caller: KnownCaller, agent_id: AgentId, request: Annotated[AgentUsageQuery, Query()], models: Models
) -> UsageReport:
    """Sum the requests and tokens of one agent by day and model."""
    period = request.to_period()
    summary = await models.sum_usage(caller.tenant_id, agent_id, period.first, period.last, ROWS_LIMIT)
    return UsageReport.from_summary(period, summary)
