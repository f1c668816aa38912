"""A chat-completion request as OpenAI's API defines it, checked as far as anybody here reads it.

Fields that nobody here reads are kept and passed on as they came: an upstream may know more than we do. What is
checked is checked so that a driver can translate without looking twice.
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field


class _OpenSchema(BaseModel):
    """Known fields are checked, unknown ones kept."""

    model_config = ConfigDict(extra="allow", frozen=True, allow_inf_nan=False)


class ImageUrl(_OpenSchema):
    url: str


class ContentPart(_OpenSchema):
    """One piece of a message's content; `type` says which of the fields is there."""

    type: str
    text: str | None = None
    image_url: ImageUrl | None = None


class FunctionCall(_OpenSchema):
    """The function that an assistant's message calls; `arguments` is JSON as the model wrote it, perhaps broken."""

    name: str
    arguments: str = ""


class ToolCall(_OpenSchema):
    id: str
    type: str = "function"
    function: FunctionCall | None = None


class ChatMessage(_OpenSchema):
    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: str | list[ContentPart] | None = None
    tool_calls: list[ToolCall] | None = None
    tool_call_id: str | None = None

    @property
    def parts(self) -> list[ContentPart]:
        """The content as parts, in whichever form it came."""
        if isinstance(self.content, str):
            return [ContentPart(type="text", text=self.content)]
        return self.content or []

    @property
    def text(self) -> str:
        """The words of the content, without images and the like."""
        return "\n".join(part.text for part in self.parts if part.text)


class FunctionDefinition(_OpenSchema):
    name: str
    description: str | None = None
    parameters: dict[str, Any] | None = None


class ToolDefinition(_OpenSchema):
    type: str
    function: FunctionDefinition | None = None


class StreamOptions(_OpenSchema):
    include_usage: bool = False


class ChatRequest(_OpenSchema):
    """The body of `POST /chat/completions`."""

    model: Annotated[str, Field(min_length=1, max_length=256)]
    messages: Annotated[list[ChatMessage], Field(min_length=1, max_length=10_000)]
    stream: bool = False
    stream_options: StreamOptions | None = None
    tools: Annotated[list[ToolDefinition], Field(max_length=2_000)] | None = None
    tool_choice: str | dict[str, Any] | None = None
    parallel_tool_calls: bool | None = None
    max_tokens: Annotated[int, Field(ge=1)] | None = None
    max_completion_tokens: Annotated[int, Field(ge=1)] | None = None
    temperature: float | None = None
    top_p: float | None = None
    stop: str | list[str] | None = None

    @property
    def wants_usage(self) -> bool:
        return self.stream_options is not None and self.stream_options.include_usage

    @property
    def functions(self) -> list[FunctionDefinition]:
        """The functions that are offered as tools."""
        return [tool.function for tool in self.tools or [] if tool.function is not None]

    def directed(self, model: str) -> "ChatRequest":
        """The same request for `model`; a streamed one asks for its usage, which is counted."""
        changes: dict[str, Any] = {"model": model}
        if self.stream:
            options = self.stream_options or StreamOptions()
            changes["stream_options"] = options.model_copy(update={"include_usage": True})
        return self.model_copy(update=changes)

    def body(self, *, stream: bool) -> dict[str, Any]:
        """The request as JSON: what was given, nothing added but whether it is to be streamed."""
        body = self.model_dump(mode="json", exclude_unset=True, exclude={"stream"})
        if stream:
            return {**body, "stream": True}
        body.pop("stream_options", None)  # upstreams refuse it without a stream
        return body


def estimate(text: str) -> int:
    """How many tokens `text` is about, where nobody has counted: four characters each."""
    return -(-len(text) // 4)
