"""Client of a Kubernetes API server, with a server that answers what a test says."""

import asyncio
import time

import pytest

from roost.core import clock
from roost.drivers.runtime.kubernetes import api as module
from roost.drivers.runtime.kubernetes.errors import (
    KubernetesAlreadyExists,
    KubernetesConflict,
    KubernetesExpired,
    KubernetesForbidden,
    KubernetesInvalid,
    KubernetesNotFound,
    KubernetesRefused,
    KubernetesThrottled,
    KubernetesUnauthorized,
    KubernetesUnreachable,
)
from tests.drivers.runtime.kubernetes.api_server import (
    PODS,
    answer_with,
    make_list,
    make_pod,
    make_status,
    refuse_with,
    serve_answers,
)

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Do not wait between attempts; return the pauses."""
    pauses: list[float] = []

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)

    monkeypatch.setattr(module.asyncio, "sleep", sleep)
    return pauses


async def test_a_request_has_query_token_and_user_agent() -> None:
    async with serve_answers(answer_with(200, {"kind": "Pod"})) as (api, server):
        assert await api.get(f"{PODS}/ada", labelSelector="a=b,c", pretty=False, limit=None) == {"kind": "Pod"}
    (seen,) = server.requests
    assert (seen.method, seen.path, seen.query) == ("GET", f"{PODS}/ada", {"labelSelector": "a=b,c", "pretty": "false"})
    assert seen.headers["authorization"] == "Bearer secret"
    assert seen.headers["user-agent"] == "roost/1.2.3"
    assert seen.headers["accept-encoding"] == "identity"


async def test_writes_have_their_content_types_and_preconditions() -> None:
    async with serve_answers(*[answer_with(200, {})] * 3) as (api, server):
        await api.create(PODS, {"kind": "Pod"}, fieldManager="roost")
        await api.patch(f"{PODS}/ada", {"spec": {}})
        await api.delete(f"{PODS}/ada", uid="u-1", grace=0, propagationPolicy="Background")
    created, patched, deleted = server.requests
    assert (created.method, created.body, created.query) == ("POST", {"kind": "Pod"}, {"fieldManager": "roost"})
    assert (patched.method, patched.headers["content-type"]) == ("PATCH", "application/merge-patch+json")
    assert deleted.body["preconditions"] == {"uid": "u-1"}
    assert (deleted.body["gracePeriodSeconds"], deleted.query) == (0, {"propagationPolicy": "Background"})


async def test_a_list_is_read_in_parts() -> None:
    async with serve_answers(make_list(make_pod("a"), more="next"), make_list(make_pod("b"))) as (api, server):
        assert [one["metadata"]["name"] for one in await api.list(PODS, labelSelector="x")] == ["a", "b"]
    assert [seen.query.get("continue") for seen in server.requests] == [None, "next"]
    assert {seen.query["labelSelector"] for seen in server.requests} == {"x"}


@pytest.mark.parametrize(
    ("status", "reason", "kind"),
    [
        (400, "BadRequest", KubernetesRefused),
        (403, "Forbidden", KubernetesForbidden),
        (404, "NotFound", KubernetesNotFound),
        (409, "AlreadyExists", KubernetesAlreadyExists),
        (409, "Conflict", KubernetesConflict),
        (410, "Expired", KubernetesExpired),
        (422, "Invalid", KubernetesInvalid),
    ],
)
async def test_a_refusal_has_the_class_and_the_words_of_its_status(
    status: int, reason: str, kind: type[KubernetesRefused]
) -> None:
    async with serve_answers(refuse_with(status, reason, 'pods "ada"\n is\x07 wrong')) as (api, server):
        with pytest.raises(kind, match=r'^Kubernetes: pods "ada" is wrong$') as refused:
            await api.get(PODS)
    assert (type(refused.value), refused.value.status, refused.value.reason) == (kind, status, reason)
    assert len(server.requests) == 1


@pytest.mark.parametrize("body", [b"<html>Bad\nGateway", b"", b"[" * 5_000, b"\xff\xfe"])
async def test_the_error_of_a_proxy_is_one_line(body: bytes) -> None:
    async with serve_answers(answer_with(413, body)) as (api, _):
        with pytest.raises(
            KubernetesRefused, match=r"^Kubernetes: status 413, and no reason of an API server"
        ) as refused:
            await api.get(PODS)
    assert "\n" not in refused.value.message
    assert len(refused.value.message) < 600


@pytest.mark.parametrize("body", [b"<html>", b"", b"[]", b"[" * 5_000, b'{"a": '])
async def test_an_answer_that_is_no_object_is_no_api_server(body: bytes) -> None:
    async with serve_answers(*[answer_with(200, body)] * 20) as (api, _):
        with pytest.raises(KubernetesUnreachable, match="no API server"):
            await api.create(PODS, {})


async def test_an_answer_is_limited_in_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_ANSWER_BYTES", 1000)
    async with serve_answers(answer_with(200, b"x" * 1001)) as (api, _):
        with pytest.raises(KubernetesUnreachable, match="more than 1000 bytes"):
            await api.create(PODS, {})


async def test_an_answer_is_limited_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_ATTEMPT_SECONDS", 0.02)
    closed = asyncio.Event()

    async def hang(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n")
        await closed.wait()

    async with serve_answers(hang) as (api, _):
        with pytest.raises(KubernetesUnreachable, match=r"127\.0\.0\.1:.*(no answer within 0 s|ReadTimeout)"):
            await api.create(PODS, {})
        closed.set()


async def test_every_request_is_repeated_when_the_server_is_too_busy(short_pauses: list[float]) -> None:
    busy = refuse_with(429, "TooManyRequests", "later", Retry_After="3")
    async with serve_answers(busy, busy, answer_with(201, {"kind": "Pod"})) as (api, server):
        assert await api.create(PODS, {}) == {"kind": "Pod"}
    assert len(server.requests) == 3
    assert all(3 < pause < 4 for pause in short_pauses)


async def test_a_server_that_is_busy_for_long_is_not_waited_for(short_pauses: list[float]) -> None:
    async with serve_answers(refuse_with(429, "TooManyRequests", "later", Retry_After="120")) as (api, _):
        with pytest.raises(KubernetesThrottled) as refused:
            await api.get(PODS)
    assert refused.value.retry_after == 120
    assert not short_pauses


async def test_attempts_end_after_a_minute(monkeypatch: pytest.MonkeyPatch, short_pauses: list[float]) -> None:
    monkeypatch.setattr(clock, "monotonic_seconds", lambda: time.monotonic() + sum(short_pauses))
    async with serve_answers(*[refuse_with(503, "", "starting")] * 50) as (api, server):
        with pytest.raises(KubernetesRefused, match="starting"):
            await api.get(PODS)
    assert 5 < len(server.requests) < 30
    assert sum(short_pauses) < 60


@pytest.mark.parametrize(
    "broken", [b"", answer_with(500), answer_with(503), b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{"]
)
async def test_reads_and_deletions_of_one_object_are_repeated(broken: bytes) -> None:
    close_after = [broken] if broken[:12] != b"HTTP/1.1 200" else [_cut(broken)]
    async with serve_answers(*close_after, answer_with(200, {}), *close_after, answer_with(200, {})) as (api, server):
        await api.get(PODS)
        await api.delete(f"{PODS}/ada", uid="u-1")
    assert [seen.method for seen in server.requests] == ["GET", "GET", "DELETE", "DELETE"]


@pytest.mark.parametrize("broken", [b"", answer_with(500), answer_with(503), answer_with(504)])
async def test_writes_that_may_have_happened_are_not_repeated(broken: bytes) -> None:
    async with serve_answers(*[broken] * 3) as (api, server):
        for write in (api.create(PODS, {}), api.patch(f"{PODS}/ada", {}), api.delete(f"{PODS}/ada")):
            with pytest.raises((KubernetesUnreachable, KubernetesRefused)) as failed:
                await write
            assert not getattr(failed.value, "is_unsent", False)
    assert len(server.requests) == 3


async def test_a_write_that_was_not_sent_is_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    attempts: list[float] = []
    async with serve_answers() as (api, server):
        pass  # nothing listens there now

    async def sleep(seconds: float) -> None:
        attempts.append(seconds)
        if len(attempts) == 3:
            replacement = await asyncio.start_server(server.handle, "127.0.0.1", server.port)
            server.answers.append(answer_with(201, {"kind": "Pod"}))
            attempts.append(replacement)  # type: ignore[arg-type]

    monkeypatch.setattr(module.asyncio, "sleep", sleep)
    fresh = module.KubernetesApi(api.access, "1")
    assert await fresh.create(PODS, {}) == {"kind": "Pod"}
    await fresh.close()
    attempts[3].close()  # type: ignore[attr-defined]


async def test_a_replaced_token_is_read_after_a_refusal() -> None:
    async with serve_answers(refuse_with(401, "Unauthorized"), answer_with(200, {})) as (api, server):
        await api.create(PODS, {})
    assert len(server.requests) == 2
    async with serve_answers(*[refuse_with(401, "Unauthorized")] * 2) as (api, server):
        with pytest.raises(KubernetesUnauthorized, match="Unauthorized"):
            await api.get(PODS)
    assert len(server.requests) == 2


async def test_a_redirection_is_not_followed() -> None:
    async with serve_answers(answer_with(302, b"", Location="http://127.0.0.1:1/")) as (api, server):
        with pytest.raises(KubernetesRefused, match="status 302"):
            await api.create(PODS, {})
    assert len(server.requests) == 1


@pytest.mark.parametrize("answer", [{"items": []}, {"metadata": {}}, {"metadata": {}, "items": [1]}, make_status(200)])
async def test_a_list_without_objects_is_none(answer: object) -> None:
    async with serve_answers(answer_with(200, answer)) as (api, _):
        with pytest.raises(KubernetesUnreachable, match="the API server sent"):
            await api.list(PODS)


def _cut(answer: bytes):
    async def send(writer: asyncio.StreamWriter) -> None:
        writer.write(answer)

    return send


async def test_a_watch_yields_events_in_whatever_parts_they_come() -> None:
    text = b'{"type":"ADDED","object":{"a":1}}\n{"type":"BOOKMARK","object":{"b":2}}\n\n'

    async def send(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        for at in range(len(text)):
            writer.write(text[at : at + 1])
            await writer.drain()

    async with serve_answers(send) as (api, server):
        events = [event async for event in api.watch(PODS, 60, resourceVersion="7")]
    assert events == [("ADDED", {"a": 1}), ("BOOKMARK", {"b": 2})]
    assert server.requests[0].query == {"watch": "true", "allowWatchBookmarks": "true", "resourceVersion": "7"}


@pytest.mark.parametrize("line", [b"<html>\n", b"[]\n", b'{"type":"ADDED"}\n', b"x" * 2000])
async def test_a_watch_of_something_else_fails(line: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_LINE_BYTES", 1000)
    async with serve_answers(answer_with(200, line)) as (api, server):
        with pytest.raises(KubernetesUnreachable):
            _ = [event async for event in api.watch(PODS, 60)]
    assert len(server.requests) == 1


async def test_a_watch_that_is_silent_fails() -> None:
    closed = asyncio.Event()

    async def hang(writer: asyncio.StreamWriter) -> None:
        writer.write(b'HTTP/1.1 200 OK\r\n\r\n{"type":"ADDED","object":{}}\n')
        await closed.wait()

    async with serve_answers(hang) as (api, _):
        with pytest.raises(KubernetesUnreachable, match="ReadTimeout"):
            _ = [event async for event in api.watch(PODS, 0.05)]
        closed.set()
