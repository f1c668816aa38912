"""Keys of model providers over HTTP, beyond the contract."""

from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Depends
from pydantic import Field

from roost.agents.models.keys.service import ModelKeyService
from roost.agents.setup.secrets.providers import PROVIDERS
from roost.core.sensitive import Sensitive
from roost.identity.authenticator import AgentId, OwnerCaller, ServiceCaller
from roost.web.schemas import ApiSchema, Text
from roost.web.service_registry import provide_service

Service = Annotated[ModelKeyService, Depends(provide_service(ModelKeyService))]
router = APIRouter(prefix="/v0", tags=["models"])


class UseModelKeyRequest(ApiSchema):
    """`replaceFor`: ids of the other agents that may get the new key, because they use the one that it replaces."""

    provider: Annotated[Text, Field(max_length=32, examples=["openai"])]
    key: Annotated[
        Text, Field(repr=False, max_length=8192, examples=["sk-example"], json_schema_extra={"minLength": 1})
    ]
    replace_for: Annotated[Sequence[Annotated[Text, Field(max_length=256)]], Field(max_length=1000)] = ()


class UseModelKeyResponse(ApiSchema):
    success: bool = True
    secret: str = Field(examples=["OPENAI_API_KEY"])
    models: Sequence[str] = Field(examples=[["gpt-5.2"]])


class ModelProviderRecord(ApiSchema):
    """`secret`: the name under which a pasted key is stored; `keyPrefixes`: how keys begin, if all do."""

    id: str = Field(examples=["openai"])
    label: str = Field(examples=["OpenAI"])
    secret: str = Field(examples=["OPENAI_API_KEY"])
    key_prefixes: Sequence[str] = Field(examples=[["sk-proj-", "sk-"]])


class ModelProviderList(ApiSchema):
    providers: Sequence[ModelProviderRecord]


@router.get("/model-providers")
async def list_model_providers(_: ServiceCaller) -> ModelProviderList:
    """List the providers of models whose key can be pasted, with the name of its secret and how keys begin."""
    return ModelProviderList(
        providers=[
            ModelProviderRecord(id=one.id, label=one.label, secret=one.usual_name, key_prefixes=one.key_prefixes)
            for one in PROVIDERS
            if one.label is not None
        ]
    )


@router.put("/agents/{agentId}/model-key")
async def use_model_key(
    caller: OwnerCaller, agent_id: AgentId, body: UseModelKeyRequest, keys: Service
) -> UseModelKeyResponse:
    """Try a provider's key; if it works, store it for the agent, and restart a gateway that runs."""
    others = frozenset(body.replace_for)
    name, models = await keys.use(caller.tenant_id, agent_id, body.provider, Sensitive(body.key), others)
    return UseModelKeyResponse(secret=name, models=models)
