"""Local stand-ins of the platforms where people chat: one TLS server that is all of their hosts, in its own thread.

They speak as much of each platform's API as bots need for private messages, check the tokens, and keep what they were
asked. What a platform would refuse for its form alone they do not all refuse.
"""

import asyncio
import email
import json
import socket
import ssl
import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.message import Message
from typing import Any, ClassVar
from urllib.parse import parse_qsl

import uvicorn
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from tests.platforms.tls import Authority


@dataclass
class FakePlatform:
    """What all stand-ins keep. A user is known by an id; each has one private conversation with the bot.

    asked: every call by name, in order. refused: calls whose token was wrong. posted: the bot's messages as they stand
    now, by conversation and id: an edited one has its last text, a deleted one is gone.
    """

    hosts: ClassVar[tuple[str, ...]]
    asked: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    posted: defaultdict[str, dict[str, str]] = field(default_factory=lambda: defaultdict(dict))
    inbox: list[Mapping[str, Any]] = field(default_factory=list)

    @property
    def app(self) -> ASGIApp:
        raise NotImplementedError

    def say(self, user: str, text: str) -> None:
        """Send the bot a message of the user."""
        raise NotImplementedError

    def said(self, user: str) -> str:
        """All that the bot has said to the user and not taken back."""
        return "\n".join(list(self.posted[self.conversation(user)].values()))

    def conversation(self, user: str) -> str:
        return user


@dataclass
class FakePlatforms:
    """strangers: hosts that were asked for here and are nobody's."""

    port: int
    plain_port: int
    authority: Authority
    standins: tuple[FakePlatform, ...]
    strangers: list[str] = field(default_factory=list)

    @property
    def settings(self) -> dict[str, str]:
        """What leads a server's agents here, `ROOST_CA_FILE` aside."""
        hosts = [host for standin in self.standins for host in standin.hosts]
        places = ",".join(f"{host}=127.0.0.1:{self.port}" for host in hosts)
        return {"ROOST_EGRESS_HOSTS": places, "ROOST_EGRESS_ALLOW": "127.0.0.1/32"}

    def plain(self, host: str) -> str:
        """The base URL of a host for those who speak no TLS."""
        return f"http://127.0.0.1:{self.plain_port}/{host}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        host = dict(scope["headers"]).get(b"host", b"").decode().partition(":")[0]
        if scope["scheme"] == "http":
            _, host, path = scope["path"].split("/", 2)
            scope = {**scope, "path": f"/{path}", "raw_path": f"/{path}".encode()}
        found = next((standin for standin in self.standins if host in standin.hosts), None)
        if found is None:
            self.strangers.append(host)
        await (found.app if found else PlainTextResponse("Nobody", 404))(scope, receive, send)


@contextmanager
def serve_platforms(*standins: FakePlatform) -> Iterator[FakePlatforms]:
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.create_server(("127.0.0.1", 0)) as plain:
        ports = (listener.getsockname()[1], plain.getsockname()[1])
        platforms = FakePlatforms(*ports, Authority("stand-ins of platforms"), standins)
        tls = platforms.authority.server(*(host for standin in standins for host in standin.hosts))
        with _serving(platforms, listener, tls), _serving(platforms, plain, None):
            yield platforms


@contextmanager
def _serving(app: ASGIApp, listener: socket.socket, tls: ssl.SSLContext | None) -> Iterator[None]:
    config = uvicorn.Config(app, ws="websockets-sansio", lifespan="off", log_config=None, timeout_graceful_shutdown=1)
    config.load()
    config.ssl = tls
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        yield
    finally:
        server.should_exit = True
        thread.join(20)
        assert not thread.is_alive()


async def arrived(inbox: list[Mapping[str, Any]], after: int, seconds: float) -> bool:
    """Whether the inbox holds more than `after` messages, now or soon. Messages come from another thread."""
    end = time.monotonic() + seconds
    while len(inbox) <= after and time.monotonic() < end:
        await asyncio.sleep(0.02)
    return len(inbox) > after


def _decode_part(part: Message) -> str:
    content = part.get_payload(decode=True)
    assert isinstance(content, bytes)
    return content.decode()


async def fields(request: Request) -> dict[str, Any]:
    """The parameters of a call, however they were sent."""
    kind, body = request.headers.get("content-type", ""), await request.body()
    asked = dict(request.query_params)
    if kind.startswith("application/json"):
        told: Any = json.loads(body or b"{}")
        return {**asked, **told} if isinstance(told, dict) else {"list": told}
    if kind.startswith("multipart/"):
        parts = email.message_from_bytes(f"Content-Type: {kind}\r\n\r\n".encode() + body).walk()
        named = ((part.get_param("name", header="content-disposition"), part) for part in parts)
        return {**asked, **{str(name): _decode_part(part) for name, part in named if name}}
    return {**asked, **dict(parse_qsl(body.decode()))}
