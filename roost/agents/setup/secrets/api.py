"""Secrets of a tenant and of an agent (contract, Secrets)."""

from typing import Annotated

from fastapi import APIRouter, Depends, Path

from roost.agents.setup.secrets import schemas
from roost.agents.setup.secrets.service import SecretService
from roost.identity.authenticator import AgentCaller, AgentId, ServiceCaller, TenantCaller
from roost.web.service_registry import provide_service

Service = Annotated[SecretService, Depends(provide_service(SecretService))]
SecretId = Annotated[str, Path(alias="id")]
AttachedId = Annotated[str, Path(alias="secretId")]
router = APIRouter(prefix="/v0", tags=["secrets"])


@router.get("/secrets", response_model_exclude_unset=True)
async def list_secrets(caller: TenantCaller, secrets: Service) -> schemas.SecretList:
    """List the tenant's secrets and variables by name, with the values of variables."""
    found, limit = await secrets.list(caller.tenant_id)
    return schemas.SecretList(secrets=[schemas.secret_list_item(one) for one in found], secret_limit=limit)


@router.post("/secrets", status_code=201)
async def create_secret(
    caller: TenantCaller, body: schemas.CreateSecretRequest, secrets: Service
) -> schemas.SecretResponse:
    """Create a secret, or with `type` a variable, whose value can be read later."""
    return schemas.secret_response(await secrets.create(caller.tenant_id, body.name, body.value, body.type))


@router.put("/secrets/{id}")
async def update_secret(
    caller: ServiceCaller, secret_id: SecretId, body: schemas.UpdateSecretRequest, secrets: Service
) -> schemas.SecretResponse:
    """Replace the value of a secret."""
    return schemas.secret_response(await secrets.update(caller.tenant_id, secret_id, body.value))


@router.delete("/secrets/{id}")
async def delete_secret(caller: ServiceCaller, secret_id: SecretId, secrets: Service) -> schemas.SecretActionResponse:
    """Delete a secret that is attached to no agent."""
    await secrets.delete(caller.tenant_id, secret_id)
    return schemas.SecretActionResponse()


@router.get("/agents/{agentId}/secrets")
async def list_attached(_: AgentCaller, agent_id: AgentId, secrets: Service) -> schemas.AgentSecretList:
    """List the secrets of an agent, and whether it uses their current values."""
    records = [schemas.AgentSecretRecord.from_attached(one) for one in await secrets.list_attached(agent_id)]
    return schemas.AgentSecretList(secrets=records)


@router.post("/agents/{agentId}/secrets", response_model_exclude_none=True)
async def attach_secrets(
    caller: AgentCaller, agent_id: AgentId, body: schemas.AttachSecretsRequest, secrets: Service
) -> schemas.AttachSecretsResponse:
    """Attach secrets to an agent; its gateway receives them at its next start."""
    attached, warnings = await secrets.attach(caller.tenant_id, agent_id, body.secret_ids)
    return schemas.AttachSecretsResponse(attached=attached, warnings=warnings or None)


@router.delete("/agents/{agentId}/secrets/{secretId}")
async def detach_secret(
    _: AgentCaller, agent_id: AgentId, secret_id: AttachedId, secrets: Service
) -> schemas.SecretActionResponse:
    """Detach a secret from an agent."""
    await secrets.detach(agent_id, secret_id)
    return schemas.SecretActionResponse()
