"""How much of a body may come, how slowly, and in which form: held to while it is read, whoever reads it.

What is too large is refused at its Content-Length where there is one, else at the byte that is one too many. Once a
body was refused the answer is ours, whatever the reader makes of its broken stream.
"""

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from roost.web import errors
from roost.web.json_tokens import MOST, JsonTokenCounter


@dataclass(frozen=True)
class BodyLimit:
    """size: bytes, None for no limit (the reader counts for itself). values: of JSON, None where it is read beside the
    loop, or is none. coded: whether Content-Encoding is taken.

    The whole body has `grace` seconds, and one more for each `rate` bytes of it that came; nothing of it may come for
    `idle` seconds at most.
    """

    size: int | None = 1024**2
    values: int | None = MOST
    message: str = "Request body too large"
    coded: bool = False
    grace: float = 30.0
    rate: int = 8 * 1024
    idle: float = 60.0


Rules = Sequence[tuple[re.Pattern[str], BodyLimit]]
"""The first pattern that matches all of `METHOD /path` counts; of none, the plain allowance."""


class BodyLimitMiddleware:
    def __init__(self, app: ASGIApp, rules: Rules = (), usual: BodyLimit | None = None) -> None:
        self._app = app
        self._rules = rules
        self._usual = usual or BodyLimit()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = dict(scope["headers"])
        length = headers.get(b"content-length")
        if length is None and b"transfer-encoding" not in headers:
            await self._app(scope, receive, send)
            return
        intake = _BodyReader(self._allowance(f"{scope['method']} {scope['path']}"), receive, send)
        intake.check(length, headers.get(b"content-encoding", b"identity"))
        try:
            if intake.refusal is None:
                await self._app(scope, intake.receive, intake.send)
        except Exception:
            if intake.refusal is None:
                raise
        if intake.refusal is not None and not intake.has_begun:
            status, message = intake.refusal
            await JSONResponse(errors.body(scope["path"], status, message), status)(scope, receive, send)

    def _allowance(self, asked: str) -> BodyLimit:
        return next((allowance for pattern, allowance in self._rules if pattern.fullmatch(asked)), self._usual)


class _BodyRefused(Exception):  # noqa: N818 - it tells the reader that no more comes
    pass


class _BodyReader:
    """The body of one request."""

    def __init__(self, allowance: BodyLimit, receive: Receive, send: Send) -> None:
        self._allowance, self._receive, self._send = allowance, receive, send
        self._began = asyncio.get_running_loop().time()
        self._size = 0
        self._values = JsonTokenCounter()
        self._is_whole = False
        self.refusal: tuple[int, str] | None = None
        self.has_begun = False
        """The answer."""

    def check(self, length: bytes | None, coding: bytes) -> None:
        """What the head alone decides."""
        limit = self._allowance.size
        if coding.lower() != b"identity" and not self._allowance.coded:
            self.refusal = 415, "Unsupported media type"
        elif length is not None and limit is not None and int(length) > limit:
            self.refusal = 413, self._allowance.message

    async def receive(self) -> Message:
        if self._is_whole:
            return await self._receive()
        if self.refusal is not None:
            return {"type": "http.disconnect"}
        deadline = self._began + self._allowance.grace + self._size / self._allowance.rate
        deadline = min(deadline, asyncio.get_running_loop().time() + self._allowance.idle)
        try:
            async with asyncio.timeout_at(deadline):
                message = await self._receive()
        except TimeoutError:
            self._cut(408, "Request timeout")
        self._count(message.get("body", b""))
        self._is_whole = not message.get("more_body", False)
        return message

    async def send(self, message: Message) -> None:
        if self.refusal is not None and not self.has_begun:
            return
        self.has_begun = True
        await self._send(message)

    def _count(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._allowance.size is not None and self._size > self._allowance.size:
            self._cut(413, self._allowance.message)
        if self._allowance.values is not None:
            self._values.add(piece)
            if self._values.count > self._allowance.values:
                self._cut(413, self._allowance.message)

    def _cut(self, status: int, message: str) -> NoReturn:
        self.refusal = status, message
        raise _BodyRefused
