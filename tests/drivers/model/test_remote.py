"""Failures of providers, whatever protocol they speak."""

import asyncio
import json
from typing import Any

import httpx2 as httpx
import pytest
from starlette.responses import JSONResponse, Response
from structlog.testing import capture_logs

from roost.core.event_stream_decoder import MAX_EVENT_CHARACTERS
from roost.core.problem import ServiceUnavailable
from roost.core.sensitive import Sensitive
from roost.drivers.model.chat import ChatRequest
from roost.drivers.model.contract import (
    ModelSettings,
    UpstreamDenied,
    UpstreamLimited,
    UpstreamMissing,
    UpstreamProblem,
    UpstreamRefused,
    UpstreamTooLarge,
    UpstreamUnavailable,
)
from roost.drivers.model.openai import OpenAIUpstream
from roost.drivers.model.remote import MAX_ANSWER_BYTES
from tests.drivers.model.local import KEY, MODEL, OpenAIProvider, raw, serving, sse, until

REQUEST = ChatRequest.model_validate({"model": MODEL, "messages": [{"role": "user", "content": "/say a b c"}]})
PIECE = json.dumps({"choices": [{"index": 0, "delta": {"content": "a"}, "finish_reason": None}]})
LAST = json.dumps({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})


def _upstream(url: str, key: Sensitive[str] | None = KEY) -> OpenAIUpstream:
    return OpenAIUpstream(ModelSettings("far", "openai", f"{url}/v1", key))


async def _refused(response: Response) -> UpstreamProblem:
    """What a provider's refusal becomes; whole, streamed and when listing it is the same."""
    provider = OpenAIProvider()
    provider.refusal = response
    async with serving(provider) as url:
        upstream = _upstream(url)
        problems: list[UpstreamProblem] = []
        for work in (upstream.complete(REQUEST), anext(upstream.stream(REQUEST)), upstream.list_models()):
            with pytest.raises(UpstreamProblem) as refused:
                await work
            problems.append(refused.value)
        await upstream.close()
    first = problems[0]
    assert all((type(p), p.message, p.extra) == (type(first), first.message, first.extra) for p in problems)
    return first


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, UpstreamRefused),
        (404, UpstreamMissing),
        (422, UpstreamRefused),
        (401, UpstreamDenied),
        (402, UpstreamDenied),
        (403, UpstreamDenied),
        (408, UpstreamUnavailable),
        (413, UpstreamTooLarge),
        (429, UpstreamLimited),
        (500, UpstreamUnavailable),
        (502, UpstreamUnavailable),
        (529, UpstreamUnavailable),
        (307, UpstreamUnavailable),
    ],
)
async def test_a_status_has_a_meaning(status: int, kind: type[UpstreamProblem]) -> None:
    assert type(await _refused(JSONResponse({"error": {"message": "no"}}, status))) is kind


@pytest.mark.parametrize(
    ("body", "message", "code"),
    [
        ({"error": {"message": "too long", "code": "context_length_exceeded"}}, "too long", "context_length_exceeded"),
        (
            {"type": "error", "error": {"type": "invalid_request_error", "message": "bad"}},
            "bad",
            "invalid_request_error",
        ),
        ({"error": "plain"}, "plain", None),
        ({"detail": "elsewhere"}, "elsewhere", None),
        ({"message": "top"}, "top", None),
        ({"error": {"message": {"deep": 1}, "code": 7}}, "", None),
        (
            [{"error": {"code": 400, "message": "no such field", "status": "INVALID_ARGUMENT"}}],
            "no such field",
            "INVALID_ARGUMENT",
        ),
        (
            {"object": "error", "message": "too many tokens", "type": "BadRequestError"},
            "too many tokens",
            "BadRequestError",
        ),
        ({"detail": [{"loc": ["body", "model"], "msg": "field required"}]}, "body.model: field required", None),
        ({"message": {"detail": [{"msg": "no input"}, {"msg": "no model"}]}}, "no input; no model", None),
        ({"success": False, "errors": [{"code": 7003, "message": "no route"}]}, "no route", None),
        ({"Message": "not here"}, "not here", None),
        ([], "", None),
        (7, "", None),
        (None, "", None),
    ],
)
async def test_a_refusal_keeps_message_and_code(body: Any, message: str, code: str | None) -> None:
    problem = await _refused(JSONResponse(body, 400))
    assert problem.message == "The model provider refused the request (far)" + (f": {message}" if message else "")
    assert problem.extra == ({"code": code} if code else {})


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"base_resp": {"status_code": 1004, "status_msg": "login fail"}, "choices": None}, "login fail"),
        ({"error_code": 336003, "error_msg": "the messages are empty"}, "the messages are empty"),
        ({"code": 11200, "message": "AppIdNoAuthError", "sid": "x"}, "AppIdNoAuthError"),
        ({"code": 500, "msg": "404 NOT_FOUND"}, "404 NOT_FOUND"),
        ({"status": "error", "message": "no"}, "no"),
        ({"detail": "not here"}, "not here"),
        ({"error": True, "message": "out of memory"}, "out of memory"),
        ({"object": "Error", "message": "too many tokens"}, "too many tokens"),
    ],
)
async def test_an_error_with_a_status_of_success_comes_through(body: Any, message: str) -> None:
    assert (await _refused(JSONResponse(body))).message.endswith(f" (far): {message}")


async def test_a_refusal_that_is_no_json_is_still_a_refusal() -> None:
    assert type(await _refused(Response("<html>", 400))) is UpstreamRefused


async def test_when_to_come_again_is_kept_within_reason() -> None:
    assert (await _refused(JSONResponse({}, 429, {"Retry-After": "7"}))).retry_after == 7
    assert (await _refused(JSONResponse({}, 429, {"Retry-After": "999999"}))).retry_after == 3600
    assert (await _refused(JSONResponse({}, 429, {"Retry-After": "Sat, 21 Nov 2026 05:00:00 GMT"}))).retry_after is None


@pytest.mark.parametrize("status", [400, 401, 403, 429, 500])
async def test_no_key_gets_out(status: int) -> None:
    key = KEY.reveal()
    said = {"error": {"message": f"Incorrect key {key}, sk-proj-****cdef, Bearer {key}", "code": "bad"}}
    with capture_logs() as logs:
        problem = await _refused(JSONResponse(said, status))
    for text in (str(problem), repr(problem), str(problem.extra), str(logs)):
        assert key not in text
        assert "cdef" not in text
    assert any(entry["event"] == "upstream.request_refused" for entry in logs)


async def test_a_long_message_is_cut() -> None:
    assert len((await _refused(JSONResponse({"error": "x" * 50_000}, 400))).message) < 600


async def test_the_key_goes_in_the_header_and_an_upstream_without_gets_none() -> None:
    provider = OpenAIProvider()
    async with serving(provider) as url:
        upstream, open_upstream = _upstream(url), _upstream(url, key=None)
        await upstream.complete(REQUEST)
        assert provider.headers["authorization"] == f"Bearer {KEY.reveal()}"
        await open_upstream.complete(REQUEST)
        assert "authorization" not in provider.headers
        await upstream.close()
        await open_upstream.close()


async def test_a_proxy_of_the_operator_is_not_asked_for_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    async with serving(OpenAIProvider()) as url:
        for address in (url, url.replace("127.0.0.1", "localhost")):
            upstream = _upstream(address)
            assert await upstream.list_models() == [MODEL]
            await upstream.close()
    far = _upstream("http://models.example.invalid")
    with pytest.raises(UpstreamUnavailable, match="refuses connections"):  # the proxy's port, where nobody listens
        await far.list_models()
    await far.close()


async def test_refused_connection_is_unavailable() -> None:
    async with raw(b"") as url:
        pass
    upstream = _upstream(url)
    with pytest.raises(UpstreamUnavailable, match="refuses connections"):
        await upstream.complete(REQUEST)
    await upstream.close()


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"nonsense\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}",
        b'HTTP/1.1 200 OK\r\nContent-Length: 14\r\n\r\n{"choices":[]}',
        b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + b'{"choices":' * 50_000,
        b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + b" " * (MAX_ANSWER_BYTES + 1),
    ],
    ids=["nothing", "no http", "cut", "a list", "empty", "no choices", "deep", "endless"],
)
async def test_an_answer_that_is_none_is_unavailable(answer: bytes) -> None:
    async with raw(answer) as url:
        upstream = _upstream(url)
        with pytest.raises(UpstreamUnavailable):
            await upstream.complete(REQUEST)
        await upstream.close()


@pytest.mark.parametrize(
    ("answer", "pieces"),
    [
        (sse(PIECE), 1),
        (sse(PIECE, "[DONE]"), 1),
        (sse(PIECE, "{broken"), 1),
        (sse(PIECE, "[1]"), 1),
        (sse(PIECE, json.dumps({"error": {"message": "overloaded"}})), 1),
        (sse(PIECE, "x" * (MAX_EVENT_CHARACTERS + 1)), 1),
        (sse(), 0),
        (b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}", 0),
    ],
    ids=["cut", "no finish", "no json", "no object", "an error", "endless", "nothing", "not a stream"],
)
async def test_a_stream_that_breaks_says_so(answer: bytes, pieces: int) -> None:
    async with raw(answer) as url:
        upstream = _upstream(url)
        stream = upstream.stream(REQUEST)
        for _ in range(pieces):
            await anext(stream)
        with pytest.raises(UpstreamUnavailable):
            await anext(stream)
        await upstream.close()


async def test_an_error_in_a_stream_keeps_its_message_without_the_key() -> None:
    error = json.dumps({"error": {"message": f"lost {KEY.reveal()}", "code": "server_error"}})
    async with raw(sse(PIECE, error)) as url:
        upstream = _upstream(url)
        with pytest.raises(UpstreamUnavailable, match=r"lost \[redacted\]") as broken:
            [_ async for _ in upstream.stream(REQUEST)]
        assert broken.value.extra == {"code": "server_error"}
        await upstream.close()


async def test_a_stream_that_finished_needs_no_last_word() -> None:
    answer = sse(PIECE, "", LAST).replace(b"data:", b": a comment\n\nretry: 5\ndata:", 1)
    async with raw(answer) as url:
        upstream = _upstream(url)
        assert len([_ async for _ in upstream.stream(REQUEST)]) == 2
        await upstream.close()


@pytest.mark.parametrize("end", ["\n", "\r", "\r\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
async def test_a_stream_in_any_form_of_the_format(mark: str, end: str) -> None:
    """The decoder has the rules; here they hold for what a provider sends."""
    first = json.dumps({"choices": [{"index": 0, "delta": {"content": "a\u2028b\x85"}}]}, ensure_ascii=False)
    lines = [f"event: x{end}data: {first[:12]}", f"data:{first[12:]}{end}", f": quiet{end}", f"data: {LAST}{end}"]
    head, body = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n", end.join([*lines, "data: [DONE]"])
    async with raw(head + (mark + body).encode()) as url:
        upstream = _upstream(url)
        chunks = [chunk async for chunk in upstream.stream(REQUEST)]
        await upstream.close()
    assert "".join(chunk["choices"][0]["delta"].get("content", "") for chunk in chunks) == "a\u2028b\x85"


async def test_closed_or_cancelled_request_ends_at_the_provider() -> None:
    provider = OpenAIProvider()
    hanging = REQUEST.model_copy(update={"messages": [REQUEST.messages[0].model_copy(update={"content": "/hang"})]})
    async with serving(provider) as url:
        upstream = _upstream(url)
        stream = upstream.stream(hanging)
        await anext(stream)
        await until(lambda: provider.hanging == 1)
        await stream.aclose()
        await until(lambda: provider.left == 1)
        stream = upstream.stream(hanging)
        await anext(stream)
        waiting = asyncio.ensure_future(anext(stream))
        await until(lambda: provider.hanging == 2)
        waiting.cancel()
        await until(lambda: provider.left == 2)
        await asyncio.gather(waiting, return_exceptions=True)
        await upstream.close()


async def test_refusal_of_a_transport_keeps_its_words() -> None:
    class Guard(httpx.AsyncBaseTransport):
        async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
            raise ServiceUnavailable(f"{request.url.host} is refused")

    remote = OpenAIUpstream(ModelSettings("far", "openai", "http://inside.example/v1"), transport=Guard())
    with pytest.raises(UpstreamUnavailable, match=r"\(far\): inside\.example is refused"):
        await remote.list_models()
    await remote.close()
