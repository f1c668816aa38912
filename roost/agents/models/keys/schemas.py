"""API shapes of keys of model providers."""

from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

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
