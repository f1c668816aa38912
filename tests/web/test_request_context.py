import logging
from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Any

import pytest
import structlog
from fastapi import Depends, FastAPI, Request

from roost.core import log
from roost.core.problem import NotFound
from roost.hosts.url_map import CONTENT
from roost.web import errors
from roost.web.access_log import AccessRecord, write_access_log
from roost.web.request_context import RequestContextMiddleware
from tests.hosts.asgi import call, routed


async def hello(scope: Any, receive: Any, send: Any) -> None:
    await receive()
    await send({"type": "http.response.start", "status": 201, "headers": [(b"a", b"b")]})
    await send({"type": "http.response.body", "body": b"hello"})


@pytest.mark.parametrize("sane", ["abc", "A.b_c-9", "x" * 64])
async def test_a_sane_request_id_is_kept(sane: str) -> None:
    sent = await call(RequestContextMiddleware(hello), headers=[("x-request-id", sane)])
    assert sent.headers["x-request-id"] == sane


@pytest.mark.parametrize("strange", ["", "x" * 65, "a b", "a\tb", "a/b", "é"])
async def test_another_one_is_replaced(strange: str) -> None:
    first = await call(RequestContextMiddleware(hello), headers=[("x-request-id", strange)])
    second = await call(RequestContextMiddleware(hello), headers=[("x-request-id", strange)])
    assert first.headers["x-request-id"] not in {strange, second.headers["x-request-id"]}
    assert len(first.headers["x-request-id"]) == 36


async def test_security_headers_stand_on_every_response() -> None:
    headers = (await call(RequestContextMiddleware(hello))).headers
    assert headers["strict-transport-security"] == "max-age=31536000; includeSubDomains"
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["a"] == "b"


async def some_json(scope: Any, receive: Any, send: Any) -> None:
    await receive()
    headers = [(b"content-type", scope["path"].rpartition("/")[2].replace("-", "/").encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b"{}"})


async def told(path: str, headers: Iterable[tuple[str, str]] = (), **state: Any) -> Mapping[str, str]:
    """The headers of a JSON response."""
    app = RequestContextMiddleware(some_json)
    return (await call(app, path, headers=headers, state=routed(path) | state)).headers


async def test_the_storage_api_says_what_its_contract_lists() -> None:
    headers = await told("/v3/application-json")
    assert headers["content-type"] == "application/json; charset=utf-8"
    assert headers["connection"] == "keep-alive"
    assert (await told("/v3/text-plain"))["content-type"] == "text/plain"
    elsewhere = await told("/v0/application-json")
    assert (elsewhere["content-type"], "connection" in elsewhere) == ("application/json", False)


async def test_content_is_left_alone() -> None:
    headers = await told("/v3/application-json", url_rule=CONTENT)
    assert (headers["content-type"], "connection" in headers) == ("application/json", False)


async def test_who_wants_the_connection_closed_is_not_told_otherwise() -> None:
    assert "connection" not in await told("/v3/application-json", [("connection", "TE, Close")])


async def test_each_request_is_told_of_once_without_its_query() -> None:
    told: list[AccessRecord] = []
    await call(RequestContextMiddleware(hello, told.append), "/x?token=secret", method="POST", body=[b"12345"])
    (passage,) = told
    assert (passage.method, passage.path, passage.status) == ("POST", "/x", 201)
    assert (passage.received, passage.sent) == (5, 5)
    assert passage.seconds >= 0
    assert "secret" not in repr(passage)


async def test_the_path_told_is_as_it_was_sent() -> None:
    told: list[AccessRecord] = []
    await call(RequestContextMiddleware(hello, told.append), "/x%0a%1b%5b2J")
    assert told[0].path == "/x%0a%1b%5b2J"


async def test_the_path_told_is_the_routes_own() -> None:
    app, told = FastAPI(), list[AccessRecord]()

    @app.get("/v0/agents/{agentId}/logs")
    async def logs(request: Request) -> str:
        return str(log.request_id.get())

    sent = await call(RequestContextMiddleware(app, told.append), "/v0/agents/a1/logs")
    assert told[0].path == "/v0/agents/{agentId}/logs"
    assert sent.headers["x-request-id"] in sent.body.decode()
    assert log.request_id.get() is None


async def test_an_unexpected_failure_is_logged_with_its_id_and_answers_plainly() -> None:
    app, told = FastAPI(), list[AccessRecord]()
    errors.install_error_handlers(app)

    @app.get("/broken")
    async def broken() -> None:
        raise ValueError("the secret reason")

    with structlog.testing.capture_logs() as lines:
        sent = await call(RequestContextMiddleware(app, told.append), "/broken", headers=[("x-request-id", "rq-1")])
    assert sent.status == 500
    assert sent.body == b'{"error":"Internal error"}'
    assert sent.headers["x-request-id"] == "rq-1"
    assert [line["event"] for line in lines] == ["request.failed"]
    assert told[0].status == 500


async def test_a_bare_application_that_fails_answers_plainly_too() -> None:
    async def app(_scope: Any, _receive: Any, _send: Any) -> None:
        raise ValueError

    sent = await call(RequestContextMiddleware(app, lambda _: None))
    assert sent.status == 500
    assert sent.body == b'{"error":"Internal error"}'


async def test_a_failure_after_the_head_is_not_answered_twice() -> None:
    async def app(_scope: Any, _receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        raise ValueError

    sent = await call(RequestContextMiddleware(app, lambda _: None))
    assert [message["type"] for message in sent.messages] == ["http.response.start"]


async def test_a_refusal_after_the_head_is_no_failure(capsys: pytest.CaptureFixture[str]) -> None:
    app = FastAPI()
    errors.install_error_handlers(app)

    async def held() -> AsyncIterator[None]:
        yield
        raise NotFound

    @app.get("/", dependencies=[Depends(held)])
    async def answer() -> None: ...

    sent = await call(RequestContextMiddleware(app, lambda _: None))
    assert sent.status == 200
    assert "request.failed" not in capsys.readouterr().out


async def test_a_client_that_left_first_is_499() -> None:
    async def app(_scope: Any, receive: Any, _send: Any) -> None:
        await receive()

    told: list[AccessRecord] = []
    await call(RequestContextMiddleware(app, told.append))
    assert told[0].status == 499


async def test_a_client_that_left_in_its_body_is_no_failure(capsys: pytest.CaptureFixture[str]) -> None:
    async def app(scope: Any, receive: Any, _send: Any) -> None:
        await Request(scope, receive).body()

    told: list[AccessRecord] = []
    await call(RequestContextMiddleware(app, told.append), method="POST", body=[])
    assert told[0].status == 499
    assert "request.failed" not in capsys.readouterr().out


async def test_a_client_that_left_in_the_body_of_a_route_is_499(capsys: pytest.CaptureFixture[str]) -> None:
    app = FastAPI()
    errors.install_error_handlers(app)

    @app.post("/")
    async def take(request: Request) -> int:
        return len(await request.body())

    told: list[AccessRecord] = []
    await call(RequestContextMiddleware(app, told.append), method="POST", body=[])
    assert told[0].status == 499
    assert "request.failed" not in capsys.readouterr().out


async def test_a_websocket_carries_the_id_too() -> None:
    async def app(_scope: Any, _receive: Any, send: Any) -> None:
        await send({"type": "websocket.accept"})
        await send({"type": "websocket.send", "text": "abc"})

    told: list[AccessRecord] = []
    sent = await call(RequestContextMiddleware(app, told.append), kind="websocket", headers=[("x-request-id", "rq-2")])
    assert sent.headers["x-request-id"] == "rq-2"
    assert (told[0].method, told[0].status, told[0].sent) == ("WEBSOCKET", 101, 3)


def test_the_access_line_is_short_and_flat() -> None:
    passage = AccessRecord("GET", "/" + "p" * 1000, 200, 0.00123, 0, 5, "rq", "a1")
    with structlog.testing.capture_logs() as lines:
        write_access_log(passage)
    (line,) = lines
    assert line["event"] == "request.finished"
    assert len(line["path"]) == 256
    assert line["ms"] == 1.2
    assert logging.getLevelName(line["log_level"].upper()) == logging.INFO
