"""Secrets of a tenant and of an agent (contract, Secrets)."""

from typing import Annotated

from fastapi import APIRouter, Depends, Path

from roost.agents.secrets import wire
from roost.agents.secrets.service import Secrets
from roost.identity.door import AgentCaller, AgentId, ServiceCaller, TenantCaller
from roost.web.provide import provide

Service = Annotated[Secrets, Depends(provide(Secrets))]
SecretId = Annotated[str, Path(alias="id")]
AttachedId = Annotated[str, Path(alias="secretId")]
router = APIRouter(prefix="/v0", tags=["secrets"])


@router.get("/secrets", response_model_exclude_unset=True)
async def list_secrets(caller: TenantCaller, secrets: Service) -> wire.SecretList:
    """The tenant's secrets and variables by name; values of variables only."""
    return wire.listed(*await secrets.list(caller.tenant_id))


@router.post("/secrets", status_code=201)
async def create_secret(caller: TenantCaller, body: wire.CreateSecret, secrets: Service) -> wire.SecretAnswer:
    """Keep a secret, or with `type` `variable` something that may be read again."""
    return wire.answer(await secrets.create(caller.tenant_id, body.name, body.value, body.type))


@router.put("/secrets/{id}")
async def update_secret(
    caller: ServiceCaller, secret_id: SecretId, body: wire.UpdateSecret, secrets: Service
) -> wire.SecretAnswer:
    """Give a secret another value."""
    return wire.answer(await secrets.update(caller.tenant_id, secret_id, body.value))


@router.delete("/secrets/{id}")
async def delete_secret(caller: ServiceCaller, secret_id: SecretId, secrets: Service) -> wire.Done:
    """Delete a secret that no agent has."""
    await secrets.delete(caller.tenant_id, secret_id)
    return wire.Done()


@router.get("/agents/{agentId}/secrets")
async def list_attached(_: AgentCaller, agent_id: AgentId, secrets: Service) -> wire.AgentSecretList:
    """The secrets of an agent, and whether it uses their current values."""
    return wire.of_agent(await secrets.of(agent_id))


@router.post("/agents/{agentId}/secrets")
async def attach_secrets(
    caller: AgentCaller, agent_id: AgentId, body: wire.AttachSecrets, secrets: Service
) -> wire.AttachedSecrets:
    """Give an agent secrets; its gateway gets them at its next start."""
    return wire.AttachedSecrets(attached=await secrets.attach(caller.tenant_id, agent_id, body.secret_ids))


@router.delete("/agents/{agentId}/secrets/{secretId}")
async def detach_secret(_: AgentCaller, agent_id: AgentId, secret_id: AttachedId, secrets: Service) -> wire.Done:
    """Take a secret from an agent."""
    await secrets.detach(agent_id, secret_id)
    return wire.Done()
