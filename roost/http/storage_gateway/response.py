"""Responses of gateways, sent in pieces at the pace of the client until it disconnects."""

import asyncio
from collections.abc import AsyncGenerator, Iterable, Mapping
from dataclasses import dataclass, field

from starlette.types import Message, Receive, Send

from roost.core.problem import Problem, TooManyRequests
from roost.web.errors import ERROR_CODE, status_code

_STALL_TIMEOUT = 120.0
"""Seconds a client may take to receive one piece."""
_PIECE_SIZE = 1024**2


class ClientTooSlow(TooManyRequests):
    message = "The client did not receive data in time"


class ResponseAborted(Exception):  # noqa: N818 - an event
    """A response that broke off; the server closes the connection, so that clients notice that it is incomplete."""


@dataclass(frozen=True)
class GatewayResponse:
    """A response; `first` is the body, or its beginning if there is a `rest`. length: None if not known in advance."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    first: bytes = b""
    rest: AsyncGenerator[bytes] | None = None
    length: int | None = None


class ResponseOutput:
    """ASGI `send` that counts the bytes of the body that were sent."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.sent = 0

    async def __call__(self, message: Message) -> None:
        await self._send(message)
        self.sent += len(message.get("body", b""))


def text_response(status: int, message: str, headers: Mapping[str, str] | None = None) -> GatewayResponse:
    body = f"{message}\n".encode()
    defaults = {"Content-Type": "text/plain; charset=utf-8", "Cache-Control": "no-store"}
    if status >= 400:
        defaults[ERROR_CODE] = status_code(status)
    return GatewayResponse(status, defaults | dict(headers or {}), body, length=len(body))


def range_not_satisfiable(size: int) -> GatewayResponse:
    return text_response(416, "Range not satisfiable", {"Content-Range": f"bytes */{size}"})


def header_lines(response: GatewayResponse) -> list[tuple[bytes, bytes]]:
    """Return the headers of a response, with the length if it is known."""
    lines = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in response.headers.items()]
    return lines if response.length is None else [*lines, (b"Content-Length", str(response.length).encode())]


async def send_response(
    response: GatewayResponse, extra: Iterable[tuple[bytes, bytes]] = (), *, head: bool, receive: Receive, send: Send
) -> None:
    """Send a response with extra headers. Raises ResponseAborted if it cannot be completed."""
    headers = [*extra, *header_lines(response)]
    await send({"type": "http.response.start", "status": response.status, "headers": headers})
    if response.rest is not None and not head:
        await _stream(response.first, response.rest, receive, send)
    elif len(response.first) > _PIECE_SIZE and not head:
        await _stream(response.first[:_PIECE_SIZE], _split_rest(response.first), receive, send)
    else:
        if response.rest is not None:
            await response.rest.aclose()
        await send({"type": "http.response.body", "body": b"" if head else response.first})


async def _split_rest(body: bytes) -> AsyncGenerator[bytes]:
    """Split the rest of a body; sent at once it would be buffered for as long as the slowest client takes."""
    for at in range(_PIECE_SIZE, len(body), _PIECE_SIZE):
        yield body[at : at + _PIECE_SIZE]


async def _stream(first: bytes, rest: AsyncGenerator[bytes], receive: Receive, send: Send) -> None:
    disconnected = asyncio.create_task(_wait_for_disconnect(receive))
    piece: bytes | None = first
    try:
        while piece is not None and not disconnected.done():
            async with asyncio.timeout(_STALL_TIMEOUT):
                await send({"type": "http.response.body", "body": piece, "more_body": True})
            piece = await anext(rest, None)
        if not disconnected.done():
            await send({"type": "http.response.body", "body": b""})
    except TimeoutError:
        raise ResponseAborted from ClientTooSlow()
    except Problem as problem:
        raise ResponseAborted from problem
    finally:
        disconnected.cancel()
        await rest.aclose()


async def _wait_for_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
