"""`/v0/llm/v1`: the subset of OpenAI's API that agents' engines use."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, Depends, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, ValidationError
from starlette.types import Send

from roost.agents.models.gateway.concurrency import ConcurrencySlot
from roost.agents.models.gateway.errors import ClientDisconnected, ModelBodyTooLarge, ModelBodyTooSlow
from roost.agents.models.gateway.model import BODY_TIMEOUT_SECONDS, MAX_BODY_BYTES
from roost.agents.models.gateway.schemas import (
    CHAT_OPENAPI,
    DONE,
    EMBEDDINGS_OPENAPI,
    RESPONSES_OPENAPI,
    OpenAIModel,
    OpenAIModelList,
    encode_json,
    error_event,
    error_object,
    format_event,
    format_typed_event,
)
from roost.agents.models.gateway.service import EMBEDDINGS, RESPONSES, CompletionStream, ModelGateway
from roost.core.problem import Problem
from roost.drivers.model.chat import ChatRequest, ForwardedRequest
from roost.identity.authenticator import ModelCaller
from roost.web.errors import STATUS
from roost.web.json_tokens import VALUES_LIMIT, JsonTokenCounter
from roost.web.schemas import ModelErrorBody, SlashText
from roost.web.service_registry import provide_service

S = TypeVar("S", bound=BaseModel)
T = TypeVar("T")
EncodeEvent = Callable[[dict[str, Any]], bytes]
DescribeProblem = Callable[[Problem], dict[str, Any]]
_Gateway = Annotated[ModelGateway, Depends(provide_service(ModelGateway))]
router = APIRouter(
    prefix="/v0/llm/v1", tags=["models"], responses={status: {"model": ModelErrorBody} for status in STATUS.values()}
)


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
