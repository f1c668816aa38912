"""Requests of OpenAI's API: chat completions, and others that are passed on.

The fields that Roost reads are validated, so that drivers can rely on them; unknown fields are passed on unchanged,
because an upstream may support them.
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictFloat, StrictInt


class _OpenSchema(BaseModel):
    """Base of schemas that validate known fields and keep unknown ones."""

    model_config = ConfigDict(extra="allow", frozen=True, allow_inf_nan=False)


class ImageUrl(_OpenSchema):
    url: str


class ContentPart(_OpenSchema):
    """One part of a message's content; `type` names the field that is set."""

    type: str
    text: str | None = None
    refusal: str | None = None
    image_url: ImageUrl | None = None


class FunctionCall(_OpenSchema):
    """A function call of an assistant's message; `arguments` is the model's JSON, which may be malformed."""

    name: str
    arguments: str = ""


class ToolCall(_OpenSchema):
    id: str
    type: str = "function"
    function: FunctionCall | None = None


class ChatMessage(_OpenSchema):
    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: str | list[ContentPart] | None = None
    refusal: str | None = None
    tool_calls: list[ToolCall] | None = None
    tool_call_id: str | None = None

    @property
    def parts(self) -> list[ContentPart]:
        """Return the content as parts, also if it is a string or a refusal beside it."""
        content = self.content or ([ContentPart(type="refusal", refusal=self.refusal)] if self.refusal else [])
        return [ContentPart(type="text", text=content)] if isinstance(content, str) else content

    @property
    def text(self) -> str:
        """Return the text of the content, without images and other parts."""
        return "\n".join(part.text for part in self.parts if part.text)


class FunctionDefinition(_OpenSchema):
    name: str
    description: str | None = None
    parameters: dict[str, Any] | None = None


class ToolDefinition(_OpenSchema):
    type: str
    function: FunctionDefinition | None = None


class StreamOptions(_OpenSchema):
    include_usage: StrictBool = False


class ChatRequest(_OpenSchema):
    """The body of `POST /chat/completions`."""

    model: Annotated[str, Field(min_length=1, max_length=256)]
    messages: Annotated[list[ChatMessage], Field(min_length=1, max_length=10_000)]
    stream: StrictBool | None = False
    stream_options: StreamOptions | None = None
    tools: Annotated[list[ToolDefinition], Field(max_length=2_000)] | None = None
    tool_choice: str | dict[str, Any] | None = None
    parallel_tool_calls: StrictBool | None = None
    max_tokens: Annotated[StrictInt, Field(ge=1)] | None = None
    max_completion_tokens: Annotated[StrictInt, Field(ge=1)] | None = None
    temperature: StrictFloat | None = None
    top_p: StrictFloat | None = None
    stop: str | list[str] | None = None

    @property
    def wants_usage(self) -> bool:
        return self.stream_options is not None and self.stream_options.include_usage

    @property
    def functions(self) -> list[FunctionDefinition]:
        """Return the functions that are offered as tools."""
        return [tool.function for tool in self.tools or [] if tool.function is not None]

    def for_model(self, model: str) -> "ChatRequest":
        """Return the request for `model`; a streamed one asks for its usage, which Roost counts."""
        changes: dict[str, Any] = {"model": model}
        if self.stream:
            options = self.stream_options or StreamOptions()
            changes["stream_options"] = options.model_copy(update={"include_usage": True})
        return self.model_copy(update=changes)

    def request_body(self, *, stream: bool) -> dict[str, Any]:
        """Return the request as JSON, with the given fields and `stream`."""
        body = self.model_dump(mode="json", exclude_unset=True, exclude={"stream"})
        if stream:
            return {**body, "stream": True}
        body.pop("stream_options", None)  # upstreams reject it without a stream
        return body


class ForwardedRequest(_OpenSchema):
    """The body of a request that is passed on as it is, but for the name of its model."""

    model: Annotated[str, Field(min_length=1, max_length=256)]
    input: Any = None
    stream: StrictBool | None = False

    def for_model(self, model: str) -> dict[str, Any]:
        return {**self.model_dump(mode="json", exclude_unset=True), "model": model}


def estimate_tokens(text: str) -> int:
    """Estimate the number of tokens as one per four characters."""
    return -(-len(text) // 4)
