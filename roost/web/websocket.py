"""Send-only WebSockets: rejected before the upgrade, closed with a code.

Codes are those of RFC 6455 and its registry: 1001 the subject is gone, 1008 the credential was revoked,
1011 a failure here, 1013 the client was too slow and may try again.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, AbstractContextManager, suppress
from dataclasses import dataclass

from pydantic import BaseModel
from starlette.websockets import WebSocket, WebSocketDisconnect, WebSocketState

from roost.core.problem import Problem, ProblemKind

_CODES: Mapping[ProblemKind, int] = {
    ProblemKind.UNAUTHORISED: 1008,
    ProblemKind.FORBIDDEN: 1008,
    ProblemKind.MISSING: 1001,
    ProblemKind.UNAVAILABLE: 1013,
}
_FAILED = 1011
_CLOSE_SECONDS = 0.5


@dataclass(frozen=True)
class MessageSchema:
    """Annotation of a handler's socket with the schema of its messages, for the API description."""

    shape: type[BaseModel]


async def serve_messages(
    socket: WebSocket, admitted: AbstractAsyncContextManager[object], opened: AbstractContextManager[AsyncIterator[str]]
) -> None:
    """Stream the texts of `opened` to an authenticated client until `admitted` ends.

    A Problem is the response before the upgrade, else the close reason.
    """
    try:
        async with admitted:
            with opened as texts:
                await socket.accept()
                await _send(socket, texts)
    except Problem as problem:
        if socket.application_state is WebSocketState.CONNECTING:
            raise
        await _close(socket, _CODES.get(problem.kind, _FAILED), problem.message)


async def _send(socket: WebSocket, texts: AsyncIterator[str]) -> None:
    """Send until the texts end or the client disconnects; its messages are ignored."""
    sending, leaving = asyncio.create_task(_each(socket, texts)), asyncio.create_task(_until_left(socket))
    try:
        await asyncio.wait({sending, leaving}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        both = [task for task in (sending, leaving) if not task.done() and task.cancel()]
        await asyncio.gather(*both, return_exceptions=True)
    with suppress(WebSocketDisconnect, asyncio.CancelledError):
        sending.result()


async def _each(socket: WebSocket, texts: AsyncIterator[str]) -> None:
    async for text in texts:
        await socket.send_text(text)


async def _until_left(socket: WebSocket) -> None:
    while (await socket.receive())["type"] != "websocket.disconnect":
        pass


async def _close(socket: WebSocket, code: int, reason: str) -> None:
    """Close the socket with a reason, even if the client reads nothing."""
    with suppress(RuntimeError, WebSocketDisconnect, TimeoutError):
        async with asyncio.timeout(_CLOSE_SECONDS):
            await socket.close(code, reason)
