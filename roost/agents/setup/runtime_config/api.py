"""The runtime configuration of an agent's engine (contract: Console, devices, config)."""

from typing import Annotated

from fastapi import APIRouter, Depends, Response

from roost.agents.setup.runtime_config import schemas
from roost.agents.setup.runtime_config.errors import InvalidConfig
from roost.agents.setup.runtime_config.model import expect_tags, format_etag
from roost.agents.setup.runtime_config.service import RuntimeConfigService
from roost.identity.authenticator import AgentCaller, AgentId
from roost.web.errors import refuse_body_with
from roost.web.schemas import IfMatch
from roost.web.service_registry import provide_service

Service = Annotated[RuntimeConfigService, Depends(provide_service(RuntimeConfigService))]
router = APIRouter(prefix="/v0/agents/{agentId}/config", tags=["config"])


@router.get("")
async def get_config(_: AgentCaller, agent_id: AgentId, config: Service, response: Response) -> schemas.ConfigRecord:
    """Return the engine's configuration with placeholders for secrets, and its entity tag."""
    text = await config.read(agent_id)
    response.headers["ETag"] = format_etag(text)
    return schemas.ConfigRecord(config=text)


@router.put("", responses={412: {}})
@refuse_body_with(InvalidConfig)
async def replace_config(
    _: AgentCaller, agent_id: AgentId, body: schemas.ConfigRequest, config: Service, if_match: IfMatch = None
) -> schemas.ConfigWriteResponse:
    """Replace the configuration, except for the platform's keys; a placeholder keeps its secret value.

    With `If-Match`, it replaces only a configuration that has one of these entity tags.
    """
    await config.write(agent_id, body.config, expect_tags(if_match))
    return schemas.ConfigWriteResponse()


@router.post("/validate")
@refuse_body_with(InvalidConfig)
async def validate_config(
    _: AgentCaller, agent_id: AgentId, config: Service, body: schemas.ConfigRequest | None = None
) -> schemas.ConfigValidationResponse:
    """Validate a configuration without applying it; without a body, the current one."""
    return schemas.validation_response(await config.validate(agent_id, body.config if body else None))
