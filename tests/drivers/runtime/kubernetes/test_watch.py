"""Lists and watches, with a server that answers what a test says."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from roost.core.problem import ServerStopping
from roost.drivers.runtime.kubernetes import watch as module
from roost.drivers.runtime.kubernetes.errors import KubernetesForbidden, KubernetesUnreachable
from roost.drivers.runtime.kubernetes.watch import Reflector
from tests.drivers.runtime.kubernetes.api_server import (
    PODS,
    Answer,
    answer_with,
    make_list,
    make_pod,
    make_status,
    refuse_with,
    serve_answers,
)

pytestmark = pytest.mark.anyio
LONG = 30.0


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_FIRST_PAUSE", 0.0)


def select_phase(item: dict[str, Any]) -> str:
    return item["status"]["phase"]


class WatchStream:
    """The answer to a watch, whose events a test sends; other requests wait for `closed`."""

    def __init__(self) -> None:
        self._lines: asyncio.Queue[bytes] = asyncio.Queue()

    async def __call__(self, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        while line := await self._lines.get():
            writer.write(line)

    def send(self, kind: str, item: dict[str, Any]) -> None:
        self._lines.put_nowait(json.dumps({"type": kind, "object": item}).encode() + b"\n")

    def end(self) -> None:
        self._lines.put_nowait(b"")


def make_streams() -> list[WatchStream]:
    """Return many watches with the same event, of which a busy machine may lose some."""
    streams = [WatchStream() for _ in range(100)]
    for stream in streams:
        stream.send("ADDED", make_pod("a", 12))
    return streams


@asynccontextmanager
async def reflect(
    *answers: Answer, select: Callable[[dict[str, Any]], Any] = select_phase
) -> AsyncIterator[tuple[Reflector[Any], list[Any], list[tuple[str, Any]]]]:
    """Yield a reflector, the requests of the server, and what a listener hears."""
    async with serve_answers(*answers) as (api, server):
        reflector = Reflector(api, PODS, select, labelSelector="a=b")
        heard: list[tuple[str, Any]] = []
        reflector.listeners.append(lambda name, value: heard.append((name, value)))
        reflector.start()
        try:
            yield reflector, server.requests, heard
        finally:
            await reflector.stop()
            for answer in answers:
                if isinstance(answer, WatchStream):
                    answer.end()


async def test_a_list_in_parts_and_then_a_watch() -> None:
    stream = WatchStream()
    pages = make_list(make_pod("a"), more="next"), make_list(make_pod("b"))
    async with reflect(*pages, stream) as (reflector, requests, heard):
        await reflector.wait_listed(LONG)
        assert dict(reflector.objects) == {"a": "Running", "b": "Running"}
        stream.send("MODIFIED", make_pod("a", 11, "Failed"))
        stream.send("ADDED", make_pod("c", 12, "Pending"))
        stream.send("DELETED", make_pod("b", 13))
        assert await reflector.wait_for("b", lambda value: value is None, LONG) is None
        assert dict(reflector.objects) == {"a": "Failed", "c": "Pending"}
        assert heard[2:] == [("a", "Failed"), ("c", "Pending"), ("b", None)]
    assert all(seen.query["labelSelector"] == "a=b" for seen in requests)
    watch = requests[2].query
    assert (watch["watch"], watch["resourceVersion"], watch["allowWatchBookmarks"]) == ("true", "10", "true")
    assert 200 <= int(watch["timeoutSeconds"]) <= 600


async def test_a_watch_goes_on_from_the_last_event_or_bookmark() -> None:
    first, second, third = WatchStream(), WatchStream(), WatchStream()
    async with reflect(make_list(), first, second, third) as (reflector, requests, _):
        first.send("ADDED", make_pod("a", 11))
        first.end()
        second.send("BOOKMARK", {"metadata": {"resourceVersion": "40"}})
        second.end()
        third.send("ADDED", make_pod("b", 41))
        await reflector.wait_for("b", lambda value: value is not None, LONG)
    assert [seen.query["resourceVersion"] for seen in requests[1:]] == ["10", "11", "40"]


async def test_a_watch_that_is_cut_goes_on() -> None:
    async def cut(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{")

    stream = WatchStream()
    async with reflect(make_list(make_pod("a")), cut, b"", refuse_with(503), stream) as (reflector, requests, _):
        stream.send("MODIFIED", make_pod("a", 11, "Failed"))
        await reflector.wait_for("a", lambda value: value == "Failed", LONG)
        assert reflector.failure is None
    assert [seen.query["resourceVersion"] for seen in requests[1:]] == ["10"] * 4


@pytest.mark.parametrize("code", [410, 504, 400])
@pytest.mark.parametrize("in_stream", [True, False])
async def test_a_forgotten_version_is_listed_again(code: int, in_stream: bool) -> None:
    status = make_status(code, "Expired", "too old resource version")
    event = json.dumps({"type": "ERROR", "object": status}).encode() + b"\n"
    answer = answer_with(200, event) if in_stream else answer_with(code, status)
    stream = WatchStream()
    before, after = make_list(make_pod("a"), make_pod("b")), make_list(make_pod("b", 9, "Failed"), version=50)
    async with reflect(before, answer, after, stream) as (reflector, requests, heard):
        await reflector.wait_for("a", lambda value: value is None, LONG)
        assert dict(reflector.objects) == {"b": "Failed"}
        stream.send("BOOKMARK", {"metadata": {"resourceVersion": "51"}})
    assert heard[2:] == [("b", "Failed"), ("a", None)]
    assert "resourceVersion" not in requests[2].query


async def test_a_list_whose_next_part_is_forgotten_begins_again() -> None:
    stream = WatchStream()
    pages = make_list(make_pod("a"), more="next"), refuse_with(410, "Expired"), make_list(make_pod("b"))
    async with reflect(*pages, stream) as (reflector, requests, _):
        await reflector.wait_listed(LONG)
        assert dict(reflector.objects) == {"b": "Running"}
    assert "continue" not in requests[2].query


async def test_a_server_that_stays_busy_is_listed_again() -> None:
    stream = WatchStream()
    async with reflect(make_list(), *[refuse_with(500)] * 5, make_list(make_pod("a")), stream) as (reflector, *_):
        await reflector.wait_for("a", lambda value: value is not None, LONG)


@pytest.mark.parametrize(
    "lines",
    [
        b"{}\n",
        b"nonsense\n",
        b'{"type":"ADDED","object":{}}\n',
        b'{"type":"ADDED","object":{"metadata":{"name":"a"}}}\n',
    ],
)
async def test_events_that_are_wrong_do_not_end_the_watch(lines: bytes) -> None:
    stream = WatchStream()
    stream.send("ADDED", make_pod("z", 12))
    answers = make_list(), answer_with(200, lines), make_list(), stream
    if b"ADDED" not in lines or b"metadata" not in lines:
        answers = make_list(), answer_with(200, lines), stream
    async with reflect(*answers) as (reflector, *_):
        await reflector.wait_for("z", lambda value: value is not None, LONG)


async def test_a_silent_watch_is_opened_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_STALL_SECONDS", 0.05)
    async with reflect(make_list(), WatchStream(), *make_streams()) as (reflector, *_):
        await reflector.wait_for("a", lambda value: value is not None, LONG)


async def test_a_watch_without_an_end_is_opened_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_WATCH_SECONDS", 0.0)
    monkeypatch.setattr(module, "_GRACE_SECONDS", 0.05)
    async with reflect(make_list(), WatchStream(), *make_streams()) as (reflector, *_):
        await reflector.wait_for("a", lambda value: value is not None, LONG)


async def test_equal_values_are_no_change_and_none_is_left_out() -> None:
    stream = WatchStream()
    select = {"Running": 1, "Pending": None, "Unknown": 1, "Failed": 2}.get
    async with reflect(
        make_list(make_pod("a"), make_pod("b", 2, "Pending")), stream, select=lambda item: select(select_phase(item))
    ) as (reflector, _, heard):
        stream.send("MODIFIED", make_pod("a", 11, "Unknown"))
        stream.send("MODIFIED", make_pod("a", 12, "Failed"))
        stream.send("MODIFIED", make_pod("a", 13, "Pending"))
        await reflector.wait_for("a", lambda value: value is None, LONG)
        assert heard == [("a", 1), ("a", 2), ("a", None)]
        assert not reflector.objects


async def test_a_wait_sees_values_that_others_follow_at_once() -> None:
    stream = WatchStream()
    async with reflect(make_list(make_pod("a")), stream) as (reflector, *_):
        await reflector.wait_listed(LONG)
        wait = asyncio.ensure_future(reflector.wait_for("a", lambda value: value == "Failed", LONG))
        await asyncio.sleep(0)
        for version, phase in enumerate(("Failed", "Running"), 11):
            stream.send("MODIFIED", make_pod("a", version, phase))
        assert await wait == "Failed"
        assert not reflector._waiters


async def test_a_wait_ends_with_its_time_and_with_the_reflector() -> None:
    async with reflect(make_list(), WatchStream()) as (reflector, *_):
        with pytest.raises(TimeoutError, match="no such change of a"):
            await reflector.wait_for("a", bool, 0.05)
        wait = asyncio.ensure_future(reflector.wait_for("a", bool, LONG))
        while not reflector._waiters:
            await asyncio.sleep(0)
        await reflector.stop()
        with pytest.raises(ServerStopping):
            await wait


async def test_a_list_that_is_forbidden_fails_at_once() -> None:
    async with reflect(*[refuse_with(403, "Forbidden", "pods is forbidden")] * 100) as (reflector, *_):
        with pytest.raises(KubernetesForbidden, match="pods is forbidden"):
            await reflector.wait_listed(LONG)


async def test_a_wait_gives_the_reason_why_the_watch_fails() -> None:
    async def refuse(writer: asyncio.StreamWriter) -> None:
        writer.close()

    async with reflect(make_list(), *[refuse] * 10_000) as (reflector, requests, _):
        await reflector.wait_listed(LONG)
        while len(requests) < 3:
            await asyncio.sleep(0)
        with pytest.raises(KubernetesUnreachable):
            await reflector.wait_for("a", bool, 0.05)


async def test_a_listener_that_fails_disturbs_nobody() -> None:
    stream = WatchStream()
    async with reflect(make_list(), stream) as (reflector, _, heard):
        reflector.listeners.insert(0, lambda name, value: heard.remove((f"{name}?", value)))
        stream.send("ADDED", make_pod("a", 11))
        await reflector.wait_for("a", bool, LONG)
        assert heard == [("a", "Running")]
