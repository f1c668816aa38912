"""Calls an ASGI application the way a server does, and keeps what it sends."""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from roost.http.stack.url_map import find_rule
from roost.web.url_rule import HostAddress, HostKind, RequestAddress

MANAGEMENT = HostAddress(HostKind.MANAGEMENT, "")


@dataclass
class Sent:
    messages: list[dict[str, Any]] = field(default_factory=list)
    scope: dict[str, Any] = field(default_factory=dict)

    @property
    def status(self) -> int:
        return next(message["status"] for message in self.messages if message["type"].endswith("response.start"))

    @property
    def headers(self) -> dict[str, str]:
        start = next(message for message in self.messages if message["type"].endswith(("start", "accept")))
        return {name.decode().lower(): value.decode() for name, value in start["headers"]}

    @property
    def body(self) -> bytes:
        return b"".join(message.get("body", b"") for message in self.messages)


def routed(path: str, method: str = "GET", host: HostAddress = MANAGEMENT) -> dict[str, Any]:
    """State of a scope behind `HostRouter`, for an application that is tested without it."""
    rule = find_rule(method, path)
    return {"address": RequestAddress(rule, host, right=rule.find_right(method))}


async def call(
    app: Any,
    target: str = "/",
    *,
    method: str = "GET",
    host: str | None = "localhost",
    headers: Iterable[tuple[str, str]] = (),
    body: Iterable[bytes] | None = None,
    kind: str = "http",
    state: dict[str, Any] | None = None,
    client: tuple[str, int] | None = ("127.0.0.1", 5),
    stays: bool = False,
) -> Sent:
    """`stays`: the client waits for the end of the answer; else it leaves when its body is sent."""
    path, _, query = target.partition("?")
    hosts = [] if host is None else [("host", host)]
    scope = {
        "type": kind,
        "method": method,
        "path": unquote(path),
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "headers": [(name.lower().encode(), value.encode()) for name, value in (*hosts, *headers)],
        "scheme": "http",
        "client": client,
        "state": dict(state or {}),
    }
    if kind == "websocket":
        del scope["method"]
    sent = Sent(scope=scope)
    parts = list(body if body is not None else (b"",))

    async def receive() -> dict[str, Any]:
        if not parts and stays:
            await asyncio.Event().wait()
        if not parts:
            return {"type": "http.disconnect"}
        part = parts.pop(0)
        return {"type": "http.request", "body": part, "more_body": bool(parts)}

    async def send(message: dict[str, Any]) -> None:
        sent.messages.append(message)

    await app(scope, receive, send)
    return sent
