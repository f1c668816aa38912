"""Nobody's body is read before we know whose it is, and nobody sends more than a few at once.

The framework reads a body first and asks for the credential afterwards, so that anybody could make the server keep
what only the invited may send. The door decides here too; what a caller may do in particular, the route asks it again.
"""

from collections import Counter
from collections.abc import Awaitable, Callable

from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Receive, Scope, Send

from roost.core.problem import Problem, TooManyRequests
from roost.identity.authenticator import AuthRequest, auth_request_of
from roost.identity.caller import Caller
from roost.web import errors

Admit = Callable[[AuthRequest], Awaitable[Caller]]
"""`Door.anyone`, or the like: whoever has a credential that counts at the address. Raises a Problem for all others."""

_API = "/v0/"
_AT_ONCE = 64


class TooManyConcurrentRequests(TooManyRequests):
    message = "Too many requests at once"


class EarlyAuthMiddleware:
    def __init__(self, app: ASGIApp, admit: Admit) -> None:
        self._app = app
        self._admit = admit
        self._inside: Counter[str] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not scope["path"].startswith(_API) or not _has_body(scope):
            await self._app(scope, receive, send)
            return
        try:
            caller = await self._admit(auth_request_of(HTTPConnection(scope)))
            who = caller.agent_id or caller.tenant_id
            if self._inside[who] >= _AT_ONCE:
                raise TooManyConcurrentRequests(retry_after=1)
        except Problem as problem:
            await errors.answer(scope["path"], problem)(scope, receive, send)
            return
        self._inside[who] += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self._inside[who] -= 1
            if not self._inside[who]:
                del self._inside[who]


def _has_body(scope: Scope) -> bool:
    return any(
        name == b"transfer-encoding" or (name == b"content-length" and value.strip(b"0"))
        for name, value in scope["headers"]
    )
