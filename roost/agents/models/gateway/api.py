"""`/v0/llm/v1`: the subset of OpenAI's API that agents' engines use."""

import asyncio
import json
import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Sequence
from typing import Annotated, Any, Literal, TypeVar

from fastapi import APIRouter, Depends, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, Field, ValidationError
from starlette.types import Send

from roost.agents.models.gateway.concurrency import ConcurrencySlot
from roost.agents.models.gateway.errors import ClientDisconnected, ModelBodyTooLarge, ModelBodyTooSlow
from roost.agents.models.gateway.model import BODY_TIMEOUT_SECONDS, MAX_BODY_BYTES, ModelInfo
from roost.agents.models.gateway.service import EMBEDDINGS, RESPONSES, CompletionStream, ModelGateway
from roost.core.problem import Problem
from roost.drivers.model.chat import ChatRequest, ForwardedRequest
from roost.identity.authenticator import ModelCaller
from roost.web.errors import STATUS, error_body
from roost.web.json_tokens import VALUES_LIMIT, JsonTokenCounter
from roost.web.schemas import ModelErrorBody, SlashText
from roost.web.service_registry import provide_service
from roost.web.url_rule import ErrorForm

S = TypeVar("S", bound=BaseModel)
T = TypeVar("T")
EncodeEvent = Callable[[dict[str, Any]], bytes]
DescribeProblem = Callable[[Problem], dict[str, Any]]
_Gateway = Annotated[ModelGateway, Depends(provide_service(ModelGateway))]
router = APIRouter(
    prefix="/v0/llm/v1", tags=["models"], responses={status: {"model": ModelErrorBody} for status in STATUS.values()}
)
DONE = b"data: [DONE]\n\n"
_EVENT_NAME = re.compile(r"[a-z_.]{1,100}", re.ASCII)


class OpenAIModel(BaseModel):
    """A model; its creation time is unknown and therefore 0."""

    id: str = Field(examples=["scripted"])
    object: Literal["model"] = "model"
    created: int = 0
    owned_by: str

    @classmethod
    def from_model(cls, model: ModelInfo) -> "OpenAIModel":
        return cls(id=model.id, owned_by=model.upstream)


class OpenAIModelList(BaseModel):
    object: Literal["list"] = "list"
    data: list[OpenAIModel]

    @classmethod
    def from_models(cls, models: Sequence[ModelInfo]) -> "OpenAIModelList":
        return cls(data=[OpenAIModel.from_model(model) for model in models])


_COMPLETION = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "created": 1795416453,
    "model": "scripted",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "Good morning"}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 2, "completion_tokens": 2, "total_tokens": 4},
}
_RESPONSE = {
    "id": "resp_1",
    "object": "response",
    "status": "completed",
    "model": "gpt-5",
    "output": [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Good morning"}]}],
    "usage": {"input_tokens": 2, "output_tokens": 2, "total_tokens": 4},
}
_EMBEDDINGS = {
    "object": "list",
    "model": "text-embedding-3-small",
    "data": [{"object": "embedding", "index": 0, "embedding": [0.1, -0.2]}],
    "usage": {"prompt_tokens": 2, "total_tokens": 2},
}


def _describe(name: str, fields: dict[str, Any], answer: dict[str, Any], example: dict[str, Any]) -> dict[str, Any]:
    """Describe an endpoint of OpenAI's API; `fields` are those that Roost reads, the first two required."""
    schema = {
        "type": "object",
        "description": f"OpenAI's {name} request; fields that are not listed are passed on.",
        "required": list(fields)[:2],
        "properties": fields,
        "examples": [example],
    }
    content: dict[str, Any] = {"application/json": {"schema": {"type": "object", "examples": [answer]}}}
    if "stream" in fields:
        content["text/event-stream"] = {"schema": {"description": "Server-sent events with JSON."}}
    description = "The answer, or with `stream` its events." if "stream" in fields else "The answer."
    return {
        "requestBody": {"required": True, "content": {"application/json": {"schema": schema}}},
        "responses": {"200": {"description": description, "content": content}},
    }


_MODEL = {"type": "string"}
_STREAM = {"anyOf": [{"type": "boolean"}, {"type": "null"}], "default": False}
_INPUT: dict[str, Any] = {"anyOf": [{"type": "string"}, {"type": "array", "items": {}}]}
CHAT_OPENAPI = _describe(
    "chat completion",
    {
        "model": _MODEL,
        "messages": {"type": "array", "minItems": 1, "items": {"type": "object"}},
        "stream": _STREAM,
    },
    _COMPLETION,
    {"model": "scripted", "messages": [{"role": "user", "content": "Good morning"}]},
)
RESPONSES_OPENAPI = _describe(
    "response",
    {"model": _MODEL, "input": _INPUT, "stream": _STREAM},
    _RESPONSE,
    {"model": "gpt-5", "input": "Good morning"},
)
EMBEDDINGS_OPENAPI = _describe(
    "embedding",
    {"model": _MODEL, "input": _INPUT},
    _EMBEDDINGS,
    {"model": "text-embedding-3-small", "input": "Good morning"},
)
"""OpenAPI descriptions of requests whose bodies are read by hand because of their size."""


def encode_json(value: dict[str, Any]) -> bytes:
    """Encode JSON in ASCII, because upstreams may send lone surrogates, which UTF-8 cannot represent."""
    return json.dumps(value, separators=(",", ":")).encode()


def format_event(value: dict[str, Any]) -> bytes:
    """Format one server-sent event."""
    return b"data: " + encode_json(value) + b"\n\n"


def format_typed_event(value: dict[str, Any]) -> bytes:
    """Format one server-sent event of the Responses API, which has its type as its name, too."""
    name = value.get("type")
    is_plain = isinstance(name, str) and _EVENT_NAME.fullmatch(name)
    return (f"event: {name}\n".encode() if is_plain else b"") + format_event(value)


def error_event(problem: Problem) -> dict[str, Any]:
    """Return the event that ends an interrupted stream of the Responses API; clients read one of its two forms."""
    body = error_object(problem)
    return {"type": "error", **{name: body["error"][name] for name in ("code", "message", "param")}, **body}


def error_object(problem: Problem) -> dict[str, Any]:
    """Return the error object that ends an interrupted stream."""
    return error_body(ErrorForm.OPENAI, STATUS[problem.kind], problem.message, problem.extra)


async def _slot(caller: ModelCaller, gateway: _Gateway) -> AsyncGenerator[ConcurrencySlot, None]:
    """Hold one of the caller's slots until the last byte of the response is sent."""
    with gateway.acquire_slot(caller) as slot:
        yield slot


_Slot = Annotated[ConcurrencySlot, Depends(_slot)]


async def _chat(request: Request, slot: _Slot) -> ChatRequest:
    return _parse(ChatRequest, await _body(request, slot))


async def _forwarded(request: Request, slot: _Slot) -> ForwardedRequest:
    return _parse(ForwardedRequest, await _body(request, slot))


def _parse(schema: type[S], body: bytes) -> S:
    try:
        return schema.model_validate_json(body)
    except ValidationError as error:
        faults = error.errors(include_url=False, include_input=False, include_context=False)
        raise RequestValidationError([{**fault, "loc": ("body", *fault["loc"])} for fault in faults]) from None


@router.get("/models")
async def list_models(caller: ModelCaller, gateway: _Gateway) -> OpenAIModelList:
    """List the models that the caller may use."""
    return OpenAIModelList.from_models((await gateway.get_offer(caller.agent_id)).models)


@router.get("/models/{model:path}")
async def get_model(caller: ModelCaller, gateway: _Gateway, model: Annotated[str, SlashText]) -> OpenAIModel:
    """Return a model."""
    return OpenAIModel.from_model(await gateway.get(model, caller.agent_id))


@router.post("/chat/completions", response_class=Response, openapi_extra=CHAT_OPENAPI)
async def create_chat_completion(
    caller: ModelCaller, gateway: _Gateway, request: Request, chat: Annotated[ChatRequest, Depends(_chat)]
) -> Response:
    """Complete a chat, as JSON or with `stream` as server-sent events."""
    if chat.stream:
        return EventStream(
            await _while_connected(request, gateway.stream(caller, chat)), format_event, error_object, DONE
        )
    completion = await _while_connected(request, gateway.complete(caller, chat))
    return Response(encode_json(completion), media_type="application/json")


@router.post("/responses", response_class=Response, openapi_extra=RESPONSES_OPENAPI)
async def create_response(
    caller: ModelCaller, gateway: _Gateway, request: Request, body: Annotated[ForwardedRequest, Depends(_forwarded)]
) -> Response:
    """Create a response, as JSON or with `stream` as server-sent events, if the model's source has this endpoint."""
    if body.stream:
        stream = await _while_connected(request, gateway.forward_stream(caller, RESPONSES, body))
        return EventStream(stream, format_typed_event, error_event)
    answer = await _while_connected(request, gateway.forward(caller, RESPONSES, body))
    return Response(encode_json(answer), media_type="application/json")


@router.post("/embeddings", response_class=Response, openapi_extra=EMBEDDINGS_OPENAPI)
async def create_embeddings(
    caller: ModelCaller, gateway: _Gateway, request: Request, body: Annotated[ForwardedRequest, Depends(_forwarded)]
) -> Response:
    """Compute embeddings, if the model's source has this endpoint."""
    answer = await _while_connected(request, gateway.forward(caller, EMBEDDINGS, body))
    return Response(encode_json(answer), media_type="application/json")


class EventStream(StreamingResponse):
    """A completion as server-sent events; closes the completion when the client disconnects, too."""

    def __init__(
        self, completion: CompletionStream, encode: EncodeEvent, describe_problem: DescribeProblem, end: bytes = b""
    ) -> None:
        headers = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
        events = _encode_events(completion, encode, describe_problem, end)
        super().__init__(events, media_type="text/event-stream", headers=headers)
        self._completion = completion

    async def stream_response(self, send: Send) -> None:
        try:
            await super().stream_response(send)
        finally:
            await self._completion.aclose()


async def _encode_events(
    completion: CompletionStream, encode: EncodeEvent, describe_problem: DescribeProblem, end: bytes
) -> AsyncIterator[bytes]:
    """Encode the events of a completion, and then its end, or the problem that interrupted it."""
    try:
        async for event in completion:
            yield encode(event)
    except Problem as problem:
        yield encode(describe_problem(problem))
    else:
        yield end


async def _body(request: Request, slot: ConcurrencySlot) -> bytes:
    body, tokens = bytearray(), JsonTokenCounter()
    try:
        async with asyncio.timeout(BODY_TIMEOUT_SECONDS):
            async for chunk in request.stream():
                slot.reserve(len(chunk))
                body += chunk
                tokens.add(chunk)
                if len(body) > MAX_BODY_BYTES or tokens.count > VALUES_LIMIT:
                    raise ModelBodyTooLarge
    except TimeoutError:
        raise ModelBodyTooSlow from None
    return bytes(body)


async def _while_connected(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """Return the result of `work`; cancel it if the client disconnects first. Raises ClientDisconnected."""
    task, disconnected = asyncio.ensure_future(work), asyncio.ensure_future(_wait_for_disconnect(request))
    try:
        await asyncio.wait((task, disconnected), return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        raise ClientDisconnected
    finally:
        task.cancel()
        disconnected.cancel()
        await asyncio.gather(task, disconnected, return_exceptions=True)


async def _wait_for_disconnect(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
