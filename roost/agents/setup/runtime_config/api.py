"""The runtime configuration of an agent's engine (contract: Console, devices, config)."""

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Response

from roost.agents.setup.runtime_config.service import InvalidConfig, RuntimeConfigService, expect_tags, format_etag
from roost.identity.authenticator import AgentCaller, AgentId
from roost.web.errors import refuse_body_with
from roost.web.schemas import ApiSchema, IfMatch
from roost.web.service_registry import provide_service


class ConfigRequest(ApiSchema):
    """A configuration as text in the engine's own format or as a JSON object; the service rejects other types."""

    config: Any = None


class ConfigRecord(ApiSchema):
    config: str


class ConfigWriteResponse(ApiSchema):
    success: bool = True
    message: str = "Config written"


class ConfigValidationResponse(ApiSchema):
    """The result of a validation; `output` is the engine's."""

    valid: bool
    output: str


Service = Annotated[RuntimeConfigService, Depends(provide_service(RuntimeConfigService))]
router = APIRouter(prefix="/v0/agents/{agentId}/config", tags=["config"])


@router.get("")
async def get_config(_: AgentCaller, agent_id: AgentId, config: Service, response: Response) -> ConfigRecord:
    """Return the engine's configuration with placeholders for secrets, and its entity tag."""
    text = await config.read(agent_id)
    response.headers["ETag"] = format_etag(text)
    return ConfigRecord(config=text)


@router.put("", responses={412: {}})
@refuse_body_with(InvalidConfig)
async def replace_config(
    _: AgentCaller, agent_id: AgentId, body: ConfigRequest, config: Service, if_match: IfMatch = None
) -> ConfigWriteResponse:
    """Replace the configuration, except for the platform's keys; a placeholder keeps its secret value.

    With `If-Match`, it replaces only a configuration that has one of these entity tags.
    """
    await config.write(agent_id, body.config, expect_tags(if_match))
    return ConfigWriteResponse()


@router.post("/validate")
@refuse_body_with(InvalidConfig)
async def validate_config(
    _: AgentCaller, agent_id: AgentId, config: Service, body: ConfigRequest | None = None
) -> ConfigValidationResponse:
    """Validate a configuration without applying it; without a body, the current one."""
    return ConfigValidationResponse(**vars(await config.validate(agent_id, body.config if body else None)))
