import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from fastapi import FastAPI
from pydantic import BaseModel

from roost.web import errors
from roost.web.body_limit import BodyBudget, BodyLimitMiddleware
from roost.web.json_tokens import VALUES_LIMIT
from roost.web.url_rule import BodyLimit, ErrorForm, RequestAddress, UrlRule
from tests.http.asgi import MANAGEMENT, Sent, call

SMALL = BodyLimit(size=10)


async def counted(_scope: Any, receive: Any, send: Any) -> None:
    """The application: reads all and says how much it was."""
    size = 0
    while True:
        message = await receive()
        size += len(message.get("body", b""))
        if not message.get("more_body"):
            break
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": str(size).encode()})


def limited(limit: BodyLimit, app: Any = counted) -> Any:
    """The application behind the middleware, at a path with that limit."""

    async def routed(scope: Any, receive: Any, send: Any) -> None:
        state = {"address": RequestAddress(UrlRule(body=limit), MANAGEMENT)}
        await BodyLimitMiddleware(app)({**scope, "state": state}, receive, send)

    return routed


async def post(
    app: Any, *parts: bytes, headers: tuple[tuple[str, str], ...] = (), path: str = "/v0/x", method: str = "POST"
) -> Sent:
    return await call(app, path, method=method, headers=headers, body=parts)


def chunked() -> tuple[tuple[str, str], ...]:
    return (("transfer-encoding", "chunked"),)


def length(size: int) -> tuple[tuple[str, str], ...]:
    return (("content-length", str(size)),)


@pytest.mark.parametrize("headers", [length(10), chunked()])
async def test_bodies_within_the_limit_pass(headers: Any) -> None:
    assert (await post(limited(SMALL), b"12345", b"67890", headers=headers)).body == b"10"


async def test_a_length_over_the_limit_is_refused_before_anything_is_read() -> None:
    async def never(_scope: Any, _receive: Any, _send: Any) -> None:
        raise AssertionError("the application was asked")

    sent = await post(limited(SMALL, never), b"x" * 11, headers=length(11))
    assert sent.status == 413
    assert json.loads(sent.body) == {"error": "Request body too large"}


@pytest.mark.parametrize("headers", [chunked(), length(3)])
async def test_the_byte_that_is_one_too_many_is_refused_whatever_was_declared(headers: Any) -> None:
    sent = await post(limited(SMALL), b"x" * 10, b"x", b"x" * 1000, headers=headers)
    assert sent.status == 413
    assert sent.scope["type"] == "http"


async def test_no_body_costs_nothing_and_passes() -> None:
    assert (await post(limited(SMALL))).body == b"0"


async def test_the_limit_says_what_is_too_large() -> None:
    refused = await post(limited(BodyLimit(size=20, message="File too large")), b"x" * 21, headers=chunked())
    assert json.loads(refused.body) == {"error": "File too large"}


async def test_a_reader_that_counts_for_itself_has_no_limit() -> None:
    app = limited(BodyLimit(size=None))
    assert (await post(app, b"x" * 1000, headers=chunked())).body == b"1000"


@pytest.mark.parametrize("coding", ["gzip", "br", "gzip, gzip", "unknown"])
async def test_coded_bodies_are_refused(coding: str) -> None:
    sent = await post(BodyLimitMiddleware(counted), b"x", headers=(*chunked(), ("content-encoding", coding)))
    assert sent.status == 415


async def test_bodies_that_are_not_coded_may_say_so() -> None:
    identity = (*chunked(), ("content-encoding", "identity"))
    assert (await post(BodyLimitMiddleware(counted), b"x", headers=identity)).status == 200


async def send_slowly(app: Any, parts: AsyncIterator[bytes]) -> Sent:
    sent = Sent()

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": await anext(parts), "more_body": True}

    async def send(message: dict[str, Any]) -> None:
        sent.messages.append(message)

    scope = {"type": "http", "method": "POST", "path": "/v0/x", "headers": [(b"transfer-encoding", b"chunked")]}
    await app(scope, receive, send)
    return sent


async def test_a_body_that_drips_is_cut_off() -> None:
    async def drip() -> AsyncIterator[bytes]:
        while True:
            await asyncio.sleep(0.005)
            yield b"x"

    app = limited(BodyLimit(grace=0.1, rate=1000))
    async with asyncio.timeout(10):
        sent = await send_slowly(app, drip())
    assert sent.status == 408
    assert json.loads(sent.body) == {"error": "Request timeout"}


@pytest.mark.parametrize("allowance", [BodyLimit(grace=0.05), BodyLimit(grace=1000, idle=0.05)])
async def test_a_body_that_never_comes_is_cut_off(allowance: BodyLimit) -> None:
    async def nothing() -> AsyncIterator[bytes]:
        await asyncio.Event().wait()
        yield b""

    async with asyncio.timeout(10):
        sent = await send_slowly(limited(allowance), nothing())
    assert sent.status == 408


class AnyBody(BaseModel):
    value: Any


def framework() -> Any:
    app = FastAPI()
    errors.install_error_handlers(app)

    @app.post("/v0/x")
    async def take(body: AnyBody) -> str:
        return json.dumps(body.value)[:10]

    return BodyLimitMiddleware(app)


async def test_the_framework_does_not_turn_a_refusal_into_its_own() -> None:
    headers = (("content-type", "application/json"), *chunked())
    sent = await post(framework(), b'{"value": "', b"x" * 2**20, b'"}', headers=headers)
    assert sent.status == 413


@pytest.mark.parametrize("depth", [500, 900, 985, 1000, 99_000])
async def test_deep_nesting_is_answered_and_never_fails(depth: int) -> None:
    body = b'{"value": ' + b"[" * depth + b"]" * depth + b"}"
    headers = (("content-type", "application/json"), *length(len(body)))
    sent = await post(framework(), body, headers=headers)
    assert sent.status in ({200, 400} if depth < 1000 else {400})


@pytest.mark.parametrize(
    "body",
    [
        b"\xff\xfe",
        b'{"value": "\xc3\x28"}',
        b"\xef\xbb\xbf{}",
        b"{",
        b"null",
        b'{"value": ' + b"9" * 5000 + b"}",
    ],
)
async def test_bodies_that_are_no_json_are_400(body: bytes) -> None:
    headers = (("content-type", "application/json"), *length(len(body)))
    assert (await post(framework(), body, headers=headers)).status == 400


async def test_more_values_than_may_be_are_refused_before_they_are_read() -> None:
    headers = (("content-type", "application/json"), *chunked())
    few, many = (b'{"value": [' + b"[]," * number + b"[]]}" for number in (VALUES_LIMIT // 2 - 3, VALUES_LIMIT))
    assert (await post(framework(), few, headers=headers)).status == 200
    refused = await post(framework(), many[:100_000], many[100_000:], headers=headers)
    assert refused.status == 413
    assert json.loads(refused.body) == {"error": "Request body too large"}


async def test_signs_in_texts_are_no_values() -> None:
    body = json.dumps({"value": '"[{,' * VALUES_LIMIT}).encode()
    assert (await post(framework(), body, headers=(("content-type", "application/json"), *chunked()))).status == 200


class HoldingApp:
    """An application that keeps each body until it may answer."""

    def __init__(self) -> None:
        self.held = 0
        self.go = asyncio.Event()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.held += len((await receive())["body"])
        await self.go.wait()
        await counted(scope, receive, send)


async def test_bodies_held_at_once_are_shared_fairly() -> None:
    app = HoldingApp()
    middleware = BodyLimitMiddleware(app, BodyBudget(total=20))

    async def send(tenant: str, size: int, limit: BodyLimit = BodyLimit()) -> Sent:  # noqa: B008 - frozen
        address = RequestAddress(UrlRule(errors=ErrorForm.STORAGE, body=limit), MANAGEMENT)
        state = {"address": address, "body_owner": tenant}
        return await call(middleware, "/x", method="POST", headers=length(size), body=[b"x" * size], state=state)

    async def hold(tenant: str, size: int) -> asyncio.Task[Sent]:
        held, task = app.held, asyncio.create_task(send(tenant, size))
        while app.held < held + size:
            await asyncio.sleep(0)
        return task

    first = await hold("a", 10)
    other = await hold("b", 5)
    for tenant, status in (("a", 429), ("b", 429), ("c", 503)):
        refused = await send(tenant, 3)
        assert (refused.status, refused.headers["retry-after"]) == (status, "1")
        assert json.loads(refused.body)["error"]["code"] == status
    third = await hold("c", 2)
    app.go.set()
    assert (await send("a", 1000, BodyLimit(size=None))).status == 200  # a handler that streams holds nothing
    assert [(await task).status for task in (first, other, third)] == [200] * 3
    assert (await send("a", 10)).status == 200  # all was given back
