"""The runtime configuration of an agent's engine (contract: Console, devices, config)."""

from typing import Annotated

from fastapi import APIRouter, Depends

from roost.agents.runtime_config import schemas
from roost.agents.runtime_config.errors import InvalidConfig
from roost.agents.runtime_config.service import RuntimeConfigService
from roost.identity.authenticator import AgentCaller, AgentId
from roost.web.errors import refuse_body_with
from roost.web.service_registry import provide_service

Service = Annotated[RuntimeConfigService, Depends(provide_service(RuntimeConfigService))]
router = APIRouter(prefix="/v0/agents/{agentId}/config", tags=["config"])


@router.get("")
async def get_config(_: AgentCaller, agent_id: AgentId, config: Service) -> schemas.ConfigRecord:
    """Return the engine's configuration with placeholders for secrets."""
    return schemas.ConfigRecord(config=await config.read(agent_id))


@router.put("")
@refuse_body_with(InvalidConfig)
async def replace_config(
    _: AgentCaller, agent_id: AgentId, body: schemas.ConfigRequest, config: Service
) -> schemas.ConfigWriteResponse:
    """Replace the configuration, except for the platform's keys; a placeholder keeps its secret value."""
    await config.write(agent_id, body.config)
    return schemas.ConfigWriteResponse()


@router.post("/validate")
@refuse_body_with(InvalidConfig)
async def validate_config(
    _: AgentCaller, agent_id: AgentId, config: Service, body: schemas.ConfigRequest | None = None
) -> schemas.ConfigValidationResponse:
    """Validate a configuration without applying it; without a body, the current one."""
    return schemas.validation_response(await config.validate(agent_id, body.config if body else None))
