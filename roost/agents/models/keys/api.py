"""Keys of model providers over HTTP, beyond the contract."""

from typing import Annotated

from fastapi import APIRouter, Depends

from roost.agents.models.keys import schemas
from roost.agents.models.keys.service import ModelKeyService
from roost.core.sensitive import Sensitive
from roost.identity.authenticator import AgentId, OwnerCaller, ServiceCaller
from roost.web.service_registry import provide_service

Service = Annotated[ModelKeyService, Depends(provide_service(ModelKeyService))]
router = APIRouter(prefix="/v0", tags=["models"])


@router.get("/model-providers")
async def list_model_providers(_: ServiceCaller) -> schemas.ModelProviderList:
    """List the providers of models whose key can be pasted, with the name of its secret and how keys begin."""
    return schemas.model_provider_list()


@router.put("/agents/{agentId}/model-key")
async def use_model_key(
    caller: OwnerCaller, agent_id: AgentId, body: schemas.UseModelKeyRequest, keys: Service
) -> schemas.UseModelKeyResponse:
    """Try a provider's key; if it works, store it for the agent, and restart a gateway that runs."""
    used = await keys.use(caller.tenant_id, agent_id, body.provider, Sensitive(body.key), frozenset(body.replace_for))
    return schemas.UseModelKeyResponse(secret=used.secret, models=used.models)
