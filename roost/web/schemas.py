"""Base schemas of requests and responses: camelCase in JSON, snake_case in Python, unknown fields ignored."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, Generic, TypeVar, get_args

from fastapi import Header
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, PlainSerializer, WithJsonSchema
from pydantic.alias_generators import to_camel

from roost.core import clock
from roost.core.sanitize import is_storable

T = TypeVar("T")
_ENVELOPE_NAMES: dict[Any, str] = {None: "Empty", str: "Text"}


class ApiSchema(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, validate_by_name=True, validate_by_alias=True, frozen=True)


def _storable(text: str) -> str:
    if not is_storable(text):
        raise ValueError("text must not contain NUL or lone surrogates")
    return text


Text = Annotated[str, AfterValidator(_storable)]
"""Stored text of users."""

Moment = Annotated[
    datetime,
    PlainSerializer(clock.format_iso, return_type=str, when_used="json"),
    WithJsonSchema({"type": "string", "format": "date-time"}, mode="serialization"),
]
"""A time, written as ISO 8601 UTC with fractional seconds."""


def _refuse_number(value: object) -> object:
    try:
        float(str(value))
    except ValueError:
        return value
    raise ValueError(f"must be a date or time, got {value!r}")  # otherwise it would be read as Unix seconds


ZonedTime = Annotated[
    datetime,
    BeforeValidator(_refuse_number),
    AfterValidator(lambda moment: moment if moment.tzinfo else moment.replace(tzinfo=UTC)),
]
"""A date or time in a request; UTC if it has no zone."""

IfMatch = Annotated[str | None, Header(alias="If-Match")]
"""The condition of a write (`core/entity_tags.py`)."""

SlashText = BeforeValidator(lambda text: text.replace("%2F", "/") if isinstance(text, str) else text)
"""Decodes the slashes of a path parameter, where the URL map has its `slash_segment`."""

Uppercase = BeforeValidator(lambda text: text.upper() if isinstance(text, str) else text)
"""Accepts a value in any case."""


class StorageSchema(BaseModel):
    """Base schema of the storage API: snake_case, unknown fields ignored."""

    model_config = ConfigDict(frozen=True)


class DataEnvelope(StorageSchema, Generic[T]):
    """Envelope of responses of the storage API."""

    data: T

    @classmethod
    def model_parametrized_name(cls, params: tuple[Any, ...]) -> str:
        """Return the name of the schema in the OpenAPI description."""
        items = get_args(params[0])
        name = f"{items[0].__name__}List" if items else _ENVELOPE_NAMES.get(params[0]) or params[0].__name__
        return f"{name}Envelope"


BINARY: dict[str, Any] = {"type": "string", "format": "binary"}
"""JSON Schema of a file."""
BINARY_CONTENT = {"application/octet-stream": {"schema": BINARY}}
"""OpenAPI content of a response whose body is a file."""


def describe_body(content_type: str, schema: Mapping[str, Any], *, required: bool = True) -> dict[str, Any]:
    """Return the OpenAPI description of the body of a handler that reads its request itself."""
    return {"requestBody": {"required": required, "content": {content_type: {"schema": dict(schema)}}}}


class ErrorBody(BaseModel):
    """The error body of `/v0`, exactly one field."""

    error: str


class StorageErrorDetail(BaseModel):
    code: int
    message: str


class StorageErrorBody(BaseModel):
    """The error body of `/v3`."""

    error: StorageErrorDetail


class LegacyErrorDetail(BaseModel):
    reason: str
    details: str


class LegacyErrorBody(BaseModel):
    """The error body of the storage API's paths without `/v3`."""

    error: LegacyErrorDetail


class ModelErrorDetail(BaseModel):
    message: str
    type: str
    param: str | None
    code: str | None


class ModelErrorBody(BaseModel):
    """The error body of `/v0/llm/v1`, which is OpenAI's."""

    error: ModelErrorDetail
