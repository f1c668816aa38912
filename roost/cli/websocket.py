"""WebSockets of commands that stream."""

from typing import NoReturn

import httpx2 as httpx
from websockets.exceptions import InvalidHandshake, InvalidStatus, InvalidURI
from websockets.sync.client import ClientConnection, connect

from roost.cli.client import ServerSession, exit_with_response, trusted_authorities


def open_websocket(server: ServerSession, path: str) -> ClientConnection:
    """Open an authenticated WebSocket.

    Raises OSError when the server is not reached or answers with no handshake, and the library's exception for a
    status with which the server refuses it (`exit_with_refusal`).
    """
    url = server.url.replace("http", "ws", 1) + path
    context = trusted_authorities(server.url)
    try:
        return connect(
            url,
            additional_headers={"Authorization": f"Bearer {server.token.reveal()}"},
            proxy=None,
            max_size=None,
            close_timeout=1,
            ssl=None if isinstance(context, bool) else context,
        )
    except InvalidStatus:
        raise
    except (InvalidHandshake, InvalidURI) as error:  # InvalidURI: a redirect to a URL that is no WebSocket's
        raise ConnectionError(str(error)) from error


def exit_with_refusal(refused: InvalidStatus) -> NoReturn:
    """Exit with the error message of the HTTP answer to the opening request."""
    answer = refused.response
    headers = list(answer.headers.raw_items())
    exit_with_response(httpx.Response(answer.status_code, headers=headers, content=bytes(answer.body)))
