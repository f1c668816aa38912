"""Before a body is read: who sends it, and how many at once."""

import asyncio
import json
from typing import Any

import pytest

from roost.http.stack.middleware import EarlyAuthMiddleware
from roost.identity.auth_request import AuthRequest
from roost.identity.caller import Caller, CallerKind
from roost.identity.errors import Unauthorised
from roost.web.url_rule import UrlFamily
from tests.http.asgi import Sent, call, routed

BODY = [("content-length", "5")]


class FakeAuthenticator:
    """Admits those who are named; counts how often it was asked."""

    def __init__(self) -> None:
        self.asked = 0

    async def __call__(self, entry: AuthRequest, _family: UrlFamily) -> Caller:
        self.asked += 1
        if "authorization" not in entry.headers:
            raise Unauthorised
        return Caller(CallerKind.SERVICE, entry.headers["authorization"])


class HeldApp:
    """Reads all, then waits until it may go on."""

    def __init__(self) -> None:
        self.read = 0
        self.go = asyncio.Event()

    async def __call__(self, _scope: Any, receive: Any, send: Any) -> None:
        self.read += len((await receive())["body"])
        await self.go.wait()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})


async def post(app: Any, path: str = "/v0/agents", *headers: tuple[str, str], body: bytes = b"12345") -> Sent:
    return await call(app, path, method="POST", headers=headers, body=[body], state=routed(path, "POST"))


@pytest.mark.parametrize("framing", [("content-length", "5"), ("transfer-encoding", "chunked")])
async def test_a_strangers_body_is_not_read(framing: tuple[str, str]) -> None:
    app, authenticator = HeldApp(), FakeAuthenticator()
    answer = await post(EarlyAuthMiddleware(app, authenticator), "/v0/agents", framing)
    assert (answer.status, json.loads(answer.body)) == (401, {"error": "Unauthorized"})
    assert (app.read, authenticator.asked) == (0, 1)


@pytest.mark.parametrize(
    ("path", "headers"), [("/v0/agents", []), ("/v0/agents", [("content-length", "0")]), ("/x", BODY)]
)
async def test_nobody_is_asked_where_nothing_is_sent_or_it_is_not_ours(
    path: str, headers: list[tuple[str, str]]
) -> None:
    app, authenticator = HeldApp(), FakeAuthenticator()
    app.go.set()
    assert (await post(EarlyAuthMiddleware(app, authenticator), path, *headers)).status == 200
    assert authenticator.asked == 0


async def test_a_caller_has_so_many_at_once_and_others_are_not_in_the_way() -> None:
    app = HeldApp()
    early_auth = EarlyAuthMiddleware(app, FakeAuthenticator())
    mine, other = ("authorization", "a"), ("authorization", "b")
    first = [asyncio.create_task(post(early_auth, "/v0/agents", *BODY, mine)) for _ in range(256)]
    while app.read < 256 * 5:
        await asyncio.sleep(0)
    refused = await post(early_auth, "/v0/agents", *BODY, mine)
    assert (refused.status, refused.headers["retry-after"]) == (429, "1")
    guest = asyncio.create_task(post(early_auth, "/v0/agents", *BODY, other))
    while app.read < 257 * 5:
        await asyncio.sleep(0)
    app.go.set()
    assert {answer.status for answer in await asyncio.gather(*first, guest)} == {200}
    assert (await post(early_auth, "/v0/agents", *BODY, mine)).status == 200


async def test_the_model_gateway_is_answered_in_its_own_form() -> None:
    answer = await post(EarlyAuthMiddleware(HeldApp(), FakeAuthenticator()), "/v0/llm/v1/chat/completions", *BODY)
    assert json.loads(answer.body)["error"]["type"] == "authentication_error"
