"""Clients that do not read responses of the application."""

import socket
import threading
from typing import Any

import pytest

from roost.http.edge.dependencies import ProxyLimits
from tests.http.edge.support import eventually, hello_app, request, running_edge


@pytest.mark.parametrize("reads", [False, True])
def test_a_client_that_does_not_read_a_response_is_disconnected(reads: bool) -> None:
    size, over = 32 * 1024**2, threading.Event()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            await hello_app(scope, receive, send)
            return
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % (size + 1))]})
        await send({"type": "http.response.body", "body": bytes(size), "more_body": True})
        await send({"type": "http.response.body", "body": b"x"})  # waits until the rest is read, or the client has left
        over.set()

    with running_edge(ProxyLimits(taking=0.3), app=app) as edge, edge.connect() as sock:
        sock.sendall(request("/v0/x", host="localhost"))
        if not reads:
            assert over.wait(10)
        received = 0
        while piece := sock.recv(1 << 20):
            received += len(piece)
            if received > size:
                break
        assert (received > size) is reads


def has_ended(sock: socket.socket) -> bool:
    """Return whether the server has ended the connection, without reading from it."""
    try:
        sock.send(b"\r\n")
    except OSError:
        return True
    return False


@pytest.mark.parametrize("requests", [1, 2])
@pytest.mark.parametrize("headers", ["", "Connection: close\r\n"])
def test_a_client_that_does_not_read_a_complete_response_is_disconnected(requests: int, headers: str) -> None:
    """The application is done, and the rest of its response waits in memory."""
    size = 32 * 1024**2

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            await hello_app(scope, receive, send)
            return
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % size)]})
        await send({"type": "http.response.body", "body": bytes(size)})

    with running_edge(ProxyLimits(taking=0.3), app=app) as edge, edge.connect() as sock:
        sock.sendall(request("/v0/x", host="localhost", headers=headers) * requests)
        eventually(lambda: has_ended(sock))
