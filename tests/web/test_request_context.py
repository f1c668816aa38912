import asyncio
import json
import logging
from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Any

import pytest
import structlog
from fastapi import Depends, FastAPI, Request

from roost.core import log
from roost.core.problem import NotFound
from roost.http.stack.url_map import CONTENT
from roost.web import errors
from roost.web.access_log import AccessRecord, write_access_log
from roost.web.request_context import RequestContextMiddleware
from roost.web.url_rule import HostAddress, HostKind, RequestAddress, UrlRule
from tests.http.asgi import MANAGEMENT, call, routed


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


async def test_a_domain_of_a_tenant_binds_no_name_below_it() -> None:
    domain = HostAddress(HostKind.DOMAIN, "https://example.com", domain="example.com")
    headers = (await call(RequestContextMiddleware(hello), state=routed("/", host=domain))).headers
    assert headers["strict-transport-security"] == "max-age=31536000"
    assert headers["x-content-type-options"] == "nosniff"


async def some_json(scope: Any, receive: Any, send: Any) -> None:
    await receive()
    headers = [(b"content-type", scope["path"].rpartition("/")[2].replace("-", "/").encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b"{}"})


async def response_headers(
    path: str, headers: Iterable[tuple[str, str]] = (), rule: UrlRule | None = None
) -> Mapping[str, str]:
    """The headers of a JSON response."""
    app = RequestContextMiddleware(some_json)
    state = routed(path) if rule is None else {"address": RequestAddress(rule, MANAGEMENT)}
    return (await call(app, path, headers=headers, state=state)).headers


async def test_the_storage_api_says_what_its_contract_lists() -> None:
    headers = await response_headers("/v3/application-json")
    assert headers["content-type"] == "application/json; charset=utf-8"
    assert headers["connection"] == "keep-alive"
    assert (await response_headers("/v3/text-plain"))["content-type"] == "text/plain"
    elsewhere = await response_headers("/v0/application-json")
    assert (elsewhere["content-type"], "connection" in elsewhere) == ("application/json", False)


async def test_content_is_left_alone() -> None:
    headers = await response_headers("/v3/application-json", rule=CONTENT)
    assert (headers["content-type"], "connection" in headers) == ("application/json", False)


async def test_who_wants_the_connection_closed_is_not_told_otherwise() -> None:
    assert "connection" not in await response_headers("/v3/application-json", [("connection", "TE, Close")])


async def test_each_request_is_told_of_once_without_its_query() -> None:
    records: list[AccessRecord] = []
    await call(RequestContextMiddleware(hello, records.append), "/x?token=secret", method="POST", body=[b"12345"])
    (record,) = records
    assert (record.method, record.path, record.status) == ("POST", "/x", 201)
    assert (record.received, record.sent) == (5, 5)
    assert record.seconds >= 0
    assert "secret" not in repr(record)


async def test_the_path_told_is_as_it_was_sent() -> None:
    records: list[AccessRecord] = []
    await call(RequestContextMiddleware(hello, records.append), "/x%0a%1b%5b2J")
    assert records[0].path == "/x%0a%1b%5b2J"


async def test_the_path_told_is_the_routes_own() -> None:
    app, records = FastAPI(), list[AccessRecord]()

    @app.get("/v0/agents/{agentId}/logs")
    async def logs(request: Request) -> str:
        return str(log.request_id.get())

    sent = await call(RequestContextMiddleware(app, records.append), "/v0/agents/a1/logs")
    assert records[0].path == "/v0/agents/{agentId}/logs"
    assert sent.headers["x-request-id"] in sent.body.decode()
    assert log.request_id.get() is None


async def test_an_unexpected_failure_is_logged_with_its_id_and_answers_plainly() -> None:
    app, records = FastAPI(), list[AccessRecord]()
    errors.install_error_handlers(app)

    @app.get("/broken")
    async def broken() -> None:
        raise ValueError("the secret reason")

    with structlog.testing.capture_logs() as lines:
        sent = await call(RequestContextMiddleware(app, records.append), "/broken", headers=[("x-request-id", "rq-1")])
    assert sent.status == 500
    assert sent.body == b'{"error":"Internal error"}'
    assert sent.headers["x-request-id"] == "rq-1"
    assert [line["event"] for line in lines] == ["request.failed"]
    assert records[0].status == 500


@pytest.mark.parametrize(
    ("path", "error"),
    [
        ("/v0/agents", "The server is stopping"),
        ("/v3/files/public", {"code": 503, "message": "The server is stopping"}),
    ],
)
async def test_a_request_that_a_stop_cuts_off_is_answered(path: str, error: object) -> None:
    waits = asyncio.Event()

    async def wait(_scope: Any, _receive: Any, _send: Any) -> None:
        waits.set()
        await asyncio.Event().wait()

    request = asyncio.create_task(call(RequestContextMiddleware(wait), path, state=routed(path)))
    await waits.wait()
    request.cancel()
    sent = await request
    assert (sent.status, json.loads(sent.body), sent.headers["retry-after"]) == (503, {"error": error}, "5")


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

    records: list[AccessRecord] = []
    await call(RequestContextMiddleware(app, records.append))
    assert records[0].status == 499


async def test_a_client_that_left_in_its_body_is_no_failure(capsys: pytest.CaptureFixture[str]) -> None:
    async def app(scope: Any, receive: Any, _send: Any) -> None:
        await Request(scope, receive).body()

    records: list[AccessRecord] = []
    await call(RequestContextMiddleware(app, records.append), method="POST", body=[])
    assert records[0].status == 499
    assert "request.failed" not in capsys.readouterr().out


async def test_a_client_that_left_in_the_body_of_a_route_is_499(capsys: pytest.CaptureFixture[str]) -> None:
    app = FastAPI()
    errors.install_error_handlers(app)

    @app.post("/")
    async def take(request: Request) -> int:
        return len(await request.body())

    records: list[AccessRecord] = []
    await call(RequestContextMiddleware(app, records.append), method="POST", body=[])
    assert records[0].status == 499
    assert "request.failed" not in capsys.readouterr().out


async def test_a_websocket_carries_the_id_too() -> None:
    async def app(_scope: Any, _receive: Any, send: Any) -> None:
        await send({"type": "websocket.accept"})
        await send({"type": "websocket.send", "text": "abc"})

    records: list[AccessRecord] = []
    sent = await call(
        RequestContextMiddleware(app, records.append), kind="websocket", headers=[("x-request-id", "rq-2")]
    )
    assert sent.headers["x-request-id"] == "rq-2"
    assert (records[0].method, records[0].status, records[0].sent) == ("WEBSOCKET", 101, 3)


def test_the_access_line_is_short_and_flat() -> None:
    record = AccessRecord("GET", "/" + "p" * 1000, 200, 0.00123, 0, 5, "rq", "a1")
    with structlog.testing.capture_logs() as lines:
        write_access_log(record)
    (line,) = lines
    assert line["event"] == "request.finished"
    assert len(line["path"]) == 256
    assert line["ms"] == 1.2
    assert logging.getLevelName(line["log_level"].upper()) == logging.INFO
