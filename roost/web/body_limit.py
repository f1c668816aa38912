"""Limits the size, the speed and the encoding of request bodies while they are read, and the bytes held by all.

A body that is too large is rejected at its Content-Length, else at the first byte too many. After a rejection the
response is this middleware's own, whatever the application does with the incomplete body.
"""

import asyncio
from collections import Counter
from typing import NoReturn

from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from roost.core.problem import Problem, ServiceUnavailable, TooManyRequests
from roost.web import errors
from roost.web.json_tokens import JsonTokenCounter
from roost.web.url_rule import BodyLimit, rule_of

_RETRY_SECONDS = 1


class TooManyBodyBytes(TooManyRequests):
    message = "Too many request bodies at once"


class ServerBusy(ServiceUnavailable):
    message = "The server handles too many request bodies"


class BodyBudget:
    """Counter of the bytes of bodies whose requests are not yet answered.

    A tenant may hold as much as then remains free: alone half of the total, with another a third, and so on. Whatever a
    few tenants hold, others get a share (dynamic thresholds of shared buffers, Choudhury and Hahne 1998).
    """

    def __init__(self, total: int = 256 * 1024**2) -> None:
        self._total = total
        self._held = 0
        self._held_by = Counter[str]()

    def take(self, tenant_id: str, size: int) -> Problem | None:
        """Count `size` more bytes, or return why they must not be held. An unknown caller's tenant id is empty."""
        held = self._held_by[tenant_id]
        if held + size > self._total - self._held - size:
            return (TooManyBodyBytes if held else ServerBusy)(retry_after=_RETRY_SECONDS)
        self._held += size
        self._held_by[tenant_id] += size
        return None

    def release(self, tenant_id: str, size: int) -> None:
        self._held -= size
        self._held_by[tenant_id] -= size
        if not self._held_by[tenant_id]:
            del self._held_by[tenant_id]


class BodyLimitMiddleware:
    """Applies the body limit of the request's row in the URL map."""

    def __init__(self, app: ASGIApp, budget: BodyBudget | None = None) -> None:
        self._app = app
        self._budget = budget or BodyBudget()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = dict(scope["headers"])
        length = headers.get(b"content-length")
        if length is None and b"transfer-encoding" not in headers:
            await self._app(scope, receive, send)
            return
        rule = rule_of(scope)
        body = _BodyReader(rule.body, scope.get("state", {}).get("body_owner", ""), self._budget, receive, send)
        body.check(length, headers.get(b"content-encoding", b"identity"), headers.get(b"content-type", b""))
        try:
            if body.refusal is None:
                await self._app(scope, body.receive, body.send)
        except Exception:
            if body.refusal is None:
                raise
        finally:
            body.release()
        if body.refusal is not None and not body.has_begun:
            await body.refusal_response(scope)(scope, receive, send)


class _BodyRefused(Exception):  # noqa: N818 - it ends the read of a body that was rejected
    pass


class _BodyReader:
    def __init__(self, limit: BodyLimit, owner: str, budget: BodyBudget, receive: Receive, send: Send) -> None:
        self._limit, self._receive, self._send = limit, receive, send
        self._owner, self._budget, self._held = owner, budget, 0
        self._began = asyncio.get_running_loop().time()
        self._size = 0
        self._values = JsonTokenCounter()
        self._counts_values = True
        self._is_whole = False
        self.refusal: tuple[int, str] | Problem | None = None
        self.has_begun = False
        """Whether the application began its response."""

    def check(self, length: bytes | None, coding: bytes, content_type: bytes) -> None:
        """Reject by the headers alone."""
        limit = self._limit.size
        self._counts_values = content_type.partition(b";")[0].strip().lower() not in self._limit.uncounted
        if coding.lower() not in self._limit.codings:
            self.refusal = 415, "Unsupported media type"
        elif length is not None and limit is not None and int(length) > limit:
            self.refusal = 413, self._limit.message

    async def receive(self) -> Message:
        if self._is_whole:
            return await self._receive()
        if self.refusal is not None:
            return {"type": "http.disconnect"}
        deadline = self._began + self._limit.grace + self._size / self._limit.rate
        deadline = min(deadline, asyncio.get_running_loop().time() + self._limit.idle)
        try:
            async with asyncio.timeout_at(deadline):
                message = await self._receive()
        except TimeoutError:
            self._refuse((408, "Request timeout"))
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
        if self._limit.size is not None:
            if self._size > self._limit.size:
                self._refuse((413, self._limit.message))
            self._hold(len(piece))
        if self._limit.values is not None and self._counts_values:
            self._values.add(piece)
            if self._values.count > self._limit.values:
                self._refuse((413, self._limit.message))

    def _hold(self, size: int) -> None:
        """Count the bytes that the application keeps until it has answered; a handler without a limit streams."""
        if (problem := self._budget.take(self._owner, size)) is not None:
            self._refuse(problem)
        self._held += size

    def release(self) -> None:
        if self._held:
            self._budget.release(self._owner, self._held)

    def refusal_response(self, scope: Scope) -> Response:
        assert self.refusal is not None
        if isinstance(self.refusal, Problem):
            return errors.problem_response(rule_of(scope).errors, self.refusal)
        return errors.error_response(scope, *self.refusal)

    def _refuse(self, refusal: tuple[int, str] | Problem) -> NoReturn:
        self.refusal = refusal
        raise _BodyRefused
