"""The runtime configuration of an agent's engine (contract: Console, devices, config)."""

from typing import Annotated

from fastapi import APIRouter, Depends

from roost.agents.runtime_config import wire
from roost.agents.runtime_config.service import RuntimeConfig
from roost.identity.door import AgentCaller, AgentId
from roost.web.provide import provide

Service = Annotated[RuntimeConfig, Depends(provide(RuntimeConfig))]
router = APIRouter(prefix="/v0/agents/{agentId}/config", tags=["config"])


@router.get("")
async def read(_: AgentCaller, agent_id: AgentId, config: Service) -> wire.ConfigText:
    """The engine's configuration, with placeholders for secrets."""
    return wire.ConfigText(config=await config.read(agent_id))


@router.put("")
async def write(_: AgentCaller, agent_id: AgentId, body: wire.Config, config: Service) -> wire.ConfigWritten:
    """Replace the configuration. The platform's keys stay as they are; a placeholder keeps the value it stands for."""
    await config.write(agent_id, body.config)
    return wire.ConfigWritten()


@router.post("/validate")
async def validate(
    _: AgentCaller, agent_id: AgentId, config: Service, body: wire.Config | None = None
) -> wire.Validation:
    """Validate a configuration without applying it; without a body, the one that the agent has."""
    return wire.validation(await config.validate(agent_id, body.config if body else None))
