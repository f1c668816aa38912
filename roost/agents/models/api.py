"""`/v0/llm/v1`: the part of OpenAI's API that agents' engines speak."""

import asyncio
from collections.abc import AsyncIterator, Coroutine, Generator
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, Depends, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import StreamingResponse
from pydantic import ValidationError
from starlette.types import Send

from roost.agents.models.concurrency import ConcurrencySlot
from roost.agents.models.errors import ClientDisconnected, ModelBodyTooLarge, ModelBodyTooSlow
from roost.agents.models.model import BODY_DEADLINE, LARGEST_BODY
from roost.agents.models.schemas import (
    CHAT,
    DONE,
    OpenAIErrorBody,
    OpenAIModel,
    OpenAIModelList,
    encoded,
    event,
    failure,
)
from roost.agents.models.service import CompletionStream, ModelGateway
from roost.core.problem import Problem
from roost.drivers.model.chat import ChatRequest
from roost.identity.authenticator import ModelCaller
from roost.web.errors import STATUS
from roost.web.json_tokens import MOST, JsonTokenCounter
from roost.web.service_registry import provide_service

T = TypeVar("T")
_Gateway = Annotated[ModelGateway, Depends(provide_service(ModelGateway))]
router = APIRouter(
    prefix="/v0/llm/v1", tags=["models"], responses={status: {"model": OpenAIErrorBody} for status in STATUS.values()}
)


def _slot(caller: ModelCaller, gateway: _Gateway) -> Generator[ConcurrencySlot, None, None]:
    """One of the caller's slots, until the last byte of the answer is out."""
    with gateway.admit(caller) as slot:
        yield slot


async def _chat(request: Request, slot: Annotated[ConcurrencySlot, Depends(_slot)]) -> ChatRequest:
    """The body, read only for a caller who may enter and has a slot."""
    body = await _body(request, slot)
    try:
        return ChatRequest.model_validate_json(body)
    except ValidationError as error:
        faults = error.errors(include_url=False, include_input=False, include_context=False)
        raise RequestValidationError([{**fault, "loc": ("body", *fault["loc"])} for fault in faults]) from None


@router.get("/models")
async def models(caller: ModelCaller, gateway: _Gateway) -> OpenAIModelList:
    return OpenAIModelList.of((await gateway.offer(caller.agent_id)).models)


@router.get("/models/{model:path}")
async def model(caller: ModelCaller, gateway: _Gateway, model: str) -> OpenAIModel:
    return OpenAIModel.of(await gateway.get(model, caller.agent_id))


@router.post("/chat/completions", response_class=Response, openapi_extra=CHAT)
async def chat_completions(
    caller: ModelCaller, gateway: _Gateway, request: Request, chat: Annotated[ChatRequest, Depends(_chat)]
) -> Response:
    if chat.stream:
        return EventStream(await _while_connected(request, gateway.stream(caller, chat)))
    answer = await _while_connected(request, gateway.complete(caller, chat))
    return Response(encoded(answer), media_type="application/json")


class EventStream(StreamingResponse):
    """An answer as server-sent events. However it ends, for one when the reader goes away, the answer is closed."""

    def __init__(self, answer: CompletionStream) -> None:
        headers = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
        super().__init__(_events(answer), media_type="text/event-stream", headers=headers)
        self._answer = answer

    async def stream_response(self, send: Send) -> None:
        try:
            await super().stream_response(send)
        finally:
            await self._answer.aclose()


async def _events(answer: CompletionStream) -> AsyncIterator[bytes]:
    try:
        async for piece in answer:
            yield event(piece)
    except Problem as problem:
        yield event(failure(problem))
    else:
        yield DONE


async def _body(request: Request, slot: ConcurrencySlot) -> bytes:
    body, values = bytearray(), JsonTokenCounter()
    try:
        async with asyncio.timeout(BODY_DEADLINE):
            async for piece in request.stream():
                slot.hold(len(piece))
                body += piece
                values.add(piece)
                if len(body) > LARGEST_BODY or values.count > MOST:
                    raise ModelBodyTooLarge
    except TimeoutError:
        raise ModelBodyTooSlow from None
    return bytes(body)


async def _while_connected(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """The result of `work`, which is cancelled when the client goes away first. Raises ClientGone."""
    task, gone = asyncio.ensure_future(work), asyncio.ensure_future(_gone(request))
    try:
        await asyncio.wait((task, gone), return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        raise ClientDisconnected
    finally:
        task.cancel()
        gone.cancel()
        await asyncio.gather(task, gone, return_exceptions=True)


async def _gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
