"""WebSockets of commands that stream."""

import ssl
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from typing import NoReturn

import httpx2 as httpx
from websockets.asyncio import client
from websockets.exceptions import InvalidHandshake, InvalidStatus, InvalidURI
from websockets.sync.client import ClientConnection, connect

from roost.cli.client.session import ServerSession, connect_address, exit_with_response, trusted_authorities


def open_websocket(server: ServerSession, path: str) -> ClientConnection:
    """Open an authenticated WebSocket.

    Raises OSError when the server is not reached or answers with no handshake, and the library's exception for a
    status with which the server refuses it (`exit_with_refusal`).
    """
    with _handshake_errors():
        return connect(
            _websocket_url(server, path),
            additional_headers=_headers(server),
            proxy=None,
            max_size=None,
            close_timeout=1,
            ssl=_ssl_context(server),
            address=connect_address(server.url),
        )


@asynccontextmanager
async def connect_websocket(server: ServerSession, path: str) -> AsyncGenerator[client.ClientConnection]:
    """Open an authenticated WebSocket as `open_websocket`, for asyncio."""
    host, port = connect_address(server.url)
    with _handshake_errors():
        socket = await client.connect(
            _websocket_url(server, path),
            additional_headers=_headers(server),
            proxy=None,
            max_size=None,
            close_timeout=1,
            ssl=_ssl_context(server),
            host=host,
            port=port,
        )
    async with socket:
        yield socket


def _websocket_url(server: ServerSession, path: str) -> str:
    return server.url.replace("http", "ws", 1) + path


def _headers(server: ServerSession) -> dict[str, str]:
    return {"Authorization": f"Bearer {server.token.reveal()}"}


def _ssl_context(server: ServerSession) -> ssl.SSLContext | None:
    context = trusted_authorities(server.url)
    return context if isinstance(context, ssl.SSLContext) and server.url.startswith("https://") else None


@contextmanager
def _handshake_errors() -> Generator[None]:
    try:
        yield
    except InvalidStatus:
        raise
    except (InvalidHandshake, InvalidURI) as error:  # InvalidURI: a redirect to a URL that is no WebSocket's
        raise ConnectionError(str(error)) from error


def exit_with_refusal(refused: InvalidStatus) -> NoReturn:
    """Exit with the error message of the HTTP answer to the opening request."""
    answer = refused.response
    headers = list(answer.headers.raw_items())
    exit_with_response(httpx.Response(answer.status_code, headers=headers, content=bytes(answer.body)))
