"""An answer, and how it goes out: in pieces as fast as the client takes them, and not to a client that has left."""

import asyncio
from collections.abc import AsyncGenerator, Iterable, Mapping
from dataclasses import dataclass, field

from starlette.types import Message, Receive, Send

from roost.core.problem import Problem, TooManyRequests

_STALL = 120.0
"""Seconds that a client may take for one piece."""
_PIECE = 1024**2


class ClientTooSlow(TooManyRequests):
    message = "The client took nothing for too long"


class ResponseAborted(Exception):  # noqa: N818 - what happened
    """An answer that cannot be ended well; the connection is closed, so that nobody takes it for whole."""


@dataclass(frozen=True)
class GatewayResponse:
    """`first` is the body, or its beginning where there is a `rest`. length: None where it is not known before."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    first: bytes = b""
    rest: AsyncGenerator[bytes] | None = None
    length: int | None = None


class ResponseOutput:
    """Where an answer goes out; `sent` bytes of its body have."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.sent = 0

    async def __call__(self, message: Message) -> None:
        await self._send(message)
        self.sent += len(message.get("body", b""))


def text(status: int, message: str, headers: Mapping[str, str] | None = None) -> GatewayResponse:
    body = f"{message}\n".encode()
    own = {"Content-Type": "text/plain; charset=utf-8", "Cache-Control": "no-store"}
    return GatewayResponse(status, own | dict(headers or {}), body, length=len(body))


def unsatisfiable(size: int) -> GatewayResponse:
    """To a range beyond the end of content of that size."""
    return text(416, "Range not satisfiable", {"Content-Range": f"bytes */{size}"})


async def deliver(
    reply: GatewayResponse, besides: Iterable[tuple[bytes, bytes]] = (), *, head: bool, receive: Receive, send: Send
) -> None:
    """besides: headers of all answers. Raises BrokenOff when it began and cannot be ended."""
    headers = [*besides, *((name.encode("latin-1"), value.encode("latin-1")) for name, value in reply.headers.items())]
    if reply.length is not None:
        headers.append((b"Content-Length", str(reply.length).encode()))
    await send({"type": "http.response.start", "status": reply.status, "headers": headers})
    if reply.rest is not None and not head:
        await _stream(reply.first, reply.rest, receive, send)
    elif len(reply.first) > _PIECE and not head:
        await _stream(reply.first[:_PIECE], _beyond(reply.first), receive, send)
    else:
        if reply.rest is not None:
            await reply.rest.aclose()
        await send({"type": "http.response.body", "body": b"" if head else reply.first})


async def _beyond(body: bytes) -> AsyncGenerator[bytes]:
    """What follows the first piece. At once, it would lie there for as long as the slowest client takes."""
    for at in range(_PIECE, len(body), _PIECE):
        yield body[at : at + _PIECE]


async def _stream(first: bytes, rest: AsyncGenerator[bytes], receive: Receive, send: Send) -> None:
    gone = asyncio.create_task(_left(receive))
    piece: bytes | None = first
    try:
        while piece is not None and not gone.done():
            async with asyncio.timeout(_STALL):
                await send({"type": "http.response.body", "body": piece, "more_body": True})
            piece = await anext(rest, None)
        if not gone.done():
            await send({"type": "http.response.body", "body": b""})
    except TimeoutError:
        raise ResponseAborted from ClientTooSlow()
    except Problem as problem:
        raise ResponseAborted from problem
    finally:
        gone.cancel()
        await rest.aclose()


async def _left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
