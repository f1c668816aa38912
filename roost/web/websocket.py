"""WebSockets of authenticated clients: rejected before the upgrade, closed with a code.

Codes are those of RFC 6455 and its registry: 1001 the subject is gone or another client has it, 1007 a message was
invalid, 1008 the credential was revoked, 1011 a failure here, 1013 the client was too slow and may try again.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from contextlib import AbstractAsyncContextManager, AbstractContextManager, asynccontextmanager, nullcontext, suppress
from dataclasses import dataclass

from pydantic import BaseModel
from starlette.websockets import WebSocket, WebSocketDisconnect, WebSocketState

from roost.core.problem import Problem, ProblemKind

_CODES: Mapping[ProblemKind, int] = {
    ProblemKind.UNAUTHORISED: 1008,
    ProblemKind.FORBIDDEN: 1008,
    ProblemKind.MISSING: 1001,
    ProblemKind.CONFLICT: 1001,
    ProblemKind.INVALID: 1007,
    ProblemKind.UNAVAILABLE: 1013,
}
_NORMAL, _FAILED = 1000, 1011
ReceiveMessage = Callable[[bytes | str], Awaitable[None]]
"""Handles a message that is not empty: binary or text."""
DRAIN_SECONDS = "drain_seconds"
"""Key in the state of a connection: how long its client may leave data unread."""
_CLOSE_SECONDS = 0.5


@dataclass(frozen=True)
class MessageSchema:
    """Annotation of a handler's socket with the schema of its messages, for the API description."""

    shape: type[BaseModel]


async def serve_messages(
    socket: WebSocket, admitted: AbstractAsyncContextManager[object], opened: AbstractContextManager[AsyncIterator[str]]
) -> None:
    """Stream the texts of `opened` to an authenticated client until `admitted` ends; its messages are ignored."""

    @asynccontextmanager
    async def open_admitted() -> AsyncGenerator[AsyncIterator[str]]:
        async with admitted:
            with opened as texts:
                yield texts

    await serve_texts(socket, open_admitted())


async def serve_texts(socket: WebSocket, opened: AbstractAsyncContextManager[AsyncIterator[str]]) -> None:
    """Stream the texts of `opened`, which authenticates the client, until it ends; messages are ignored."""

    async def serve() -> None:
        async with opened as texts:
            await socket.accept()
            await run_while_connected(socket, _send_texts(socket, texts))

    await serve_socket(socket, nullcontext(), serve)


async def serve_socket(
    socket: WebSocket, admitted: AbstractAsyncContextManager[object], serve: Callable[[], Awaitable[None]]
) -> None:
    """Serve an authenticated client until `serve` returns or `admitted` ends.

    A Problem is the response before the upgrade, else the close reason.
    """
    try:
        async with admitted:
            await serve()
    except Problem as problem:
        if socket.application_state is WebSocketState.CONNECTING:
            raise
        await _close(socket, _CODES.get(problem.kind, _FAILED), problem.message)
    else:
        await _close(socket, _NORMAL)


async def accept_reader(socket: WebSocket, drain_seconds: float) -> None:
    """Accept a client that may leave data unread for `drain_seconds` before it is disconnected."""
    socket.scope["state"][DRAIN_SECONDS] = drain_seconds
    await socket.accept()


async def run_while_connected(
    socket: WebSocket, sending: Coroutine[None, None, None], receive: ReceiveMessage | None = None
) -> None:
    """Run `sending` until it ends or the client disconnects; pass messages to `receive`, one at a time."""
    tasks = {asyncio.create_task(sending), asyncio.create_task(_receive_until_disconnect(socket, receive))}
    try:
        ended, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        pending = [task for task in tasks if not task.done() and task.cancel()]
        await asyncio.gather(*pending, return_exceptions=True)
    with suppress(WebSocketDisconnect):
        for task in ended:
            task.result()


async def _receive_until_disconnect(socket: WebSocket, receive: ReceiveMessage | None) -> None:
    while (message := await socket.receive())["type"] != "websocket.disconnect":
        if receive is not None and (content := message.get("bytes") or message.get("text")):
            await receive(content)


async def _send_texts(socket: WebSocket, texts: AsyncIterator[str]) -> None:
    async for text in texts:
        await socket.send_text(text)


async def _close(socket: WebSocket, code: int, reason: str = "") -> None:
    """Close the socket with a reason, even if the client reads nothing."""
    with suppress(RuntimeError, WebSocketDisconnect, TimeoutError):
        async with asyncio.timeout(_CLOSE_SECONDS):
            await socket.close(code, reason)
