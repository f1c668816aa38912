"""The base of all request and response shapes: camelCase outside, snake_case inside, unknown fields ignored."""

from datetime import datetime
from typing import Annotated, Generic, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, PlainSerializer
from pydantic.alias_generators import to_camel

from roost.core import clock
from roost.core.sanitize import is_storable

T = TypeVar("T")


class ApiSchema(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, validate_by_name=True, validate_by_alias=True, frozen=True)


def _storable(text: str) -> str:
    if not is_storable(text):
        raise ValueError("text must not contain NUL or lone surrogates")
    return text


Text = Annotated[str, AfterValidator(_storable)]
"""Text that a person wrote and that is kept."""

Moment = Annotated[datetime, PlainSerializer(clock.format_iso, return_type=str, when_used="json")]
"""A time, written as ISO 8601 UTC with fractional seconds."""


class StorageSchema(BaseModel):
    """The base of the storage API's shapes: snake_case as it stands, unknown fields ignored."""

    model_config = ConfigDict(frozen=True)


class DataEnvelope(StorageSchema, Generic[T]):
    """The envelope of the storage API's answers."""

    data: T


class ErrorBody(BaseModel):
    """The error body of `/v0`, exactly one field."""

    error: str


class StorageErrorDetail(BaseModel):
    code: int
    message: str


class StorageErrorBody(BaseModel):
    """The error body of `/v3`."""

    error: StorageErrorDetail
