"""Server-sent events of quiet streams: comments, errors before and after the first event, and the end."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, nullcontext

import pytest

from roost.core.event_stream_decoder import decode_events
from roost.core.problem import NotFound
from roost.web import responses
from roost.web.responses import encode_events, format_event
from roost.web.schemas import ErrorBody


class SourceGone(NotFound):
    message = "The source is gone"


@asynccontextmanager
async def source(*items: str | Exception, wait: asyncio.Event | None = None) -> AsyncGenerator[AsyncGenerator[str]]:
    async def produce() -> AsyncGenerator[str]:
        for item in items:
            if isinstance(item, Exception):
                raise item
            yield item
        if wait is not None:
            await wait.wait()

    yield produce()


async def encode(*items: str | Exception) -> bytes:
    events = encode_events(nullcontext(), source(*items), lambda item: f"data: {item}\n\n".encode())
    return b"".join([event async for event in events])


async def test_events_until_the_source_ends() -> None:
    assert await encode("a", "b") == b"data: a\n\ndata: b\n\n"


async def test_an_error_before_the_first_event_is_raised_and_a_later_one_is_an_event() -> None:
    with pytest.raises(SourceGone):
        await encode(SourceGone())
    assert await encode("a", SourceGone()) == b'data: a\n\nevent: error\ndata: {"error":"The source is gone"}\n\n'


async def test_a_quiet_stream_has_comments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(responses, "KEEPALIVE_SECONDS", 0.01)
    wait = asyncio.Event()
    events = encode_events(nullcontext(), source("a", wait=wait), str.encode)
    assert await anext(events) == b"a"
    assert (await anext(events)).startswith(b":")
    wait.set()
    assert b"a" not in b"".join([event async for event in events])


def test_an_event_with_a_name() -> None:
    assert format_event(ErrorBody(error="x"), "end") == b'event: end\ndata: {"error":"x"}\n\n'


@pytest.mark.parametrize("end", ["\n", "\r", "\r\n", "\n\n", "\u2028", "\x85", "\0", "\ufeff", "\n\ndata: forged\n\n"])
def test_no_text_ends_its_event(end: str) -> None:
    """What is sent is UTF-8 without a byte-order mark, and its data one line."""
    sent = format_event(ErrorBody(error=f"a{end}b"), "error")
    ((name, data),) = decode_events([b": before\n\n", sent])
    assert name == "error"
    assert ErrorBody.model_validate_json(data).error == f"a{end}b"
    assert (sent.count(b"\n"), sent.count(b"\r"), sent[:1]) == (3, 0, b"e")
