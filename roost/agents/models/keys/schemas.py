"""API shapes of keys of model providers."""

from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

from roost.agents.setup.secrets.providers import PROVIDERS
from roost.web.schemas import ApiSchema, Text


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


def model_provider_list() -> ModelProviderList:
    return ModelProviderList(
        providers=[
            ModelProviderRecord(id=one.id, label=one.label, secret=one.usual_name, key_prefixes=one.key_prefixes)
            for one in PROVIDERS
            if one.label is not None
        ]
    )
