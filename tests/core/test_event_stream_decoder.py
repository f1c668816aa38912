"""The reader of event streams against every rule of the format (WHATWG HTML, 9.2.5 and 9.2.6)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost.core.event_stream_decoder import EventStreamDecoder, EventTooLongError, ServerSentEvent, decode_events

SEPARATORS = "a\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029\0b"
"""Line ends of other formats, which are text here."""


def read(*chunks: bytes) -> list[tuple[str, str]]:
    return [(event.name, event.data) for event in decode_events(chunks)]


@pytest.mark.parametrize(
    ("stream", "events"),
    [
        (b"data: a\n\n", [("message", "a")]),
        (b"data: a\r\rdata: b\r\n\r\n", [("message", "a"), ("message", "b")]),
        (b"\xef\xbb\xbfdata: a\n\n", [("message", "a")]),
        (b"\xef\xbb\xbf\xef\xbb\xbfdata: a\n\ndata: b\n\n", [("message", "b")]),
        (b"data: a\n\n\xef\xbb\xbfdata: b\n\n", [("message", "a")]),
        (b"data: a\ndata: b\ndata\ndata:c\n\n", [("message", "a\nb\n\nc")]),
        (b"data:  a \n\n", [("message", " a ")]),
        (b"data:\ta: b\n\n", [("message", "\ta: b")]),
        (b"data\n\ndata:\n\n", [("message", ""), ("message", "")]),
        (b"event: x\ndata: a\n\ndata: b\n\n", [("x", "a"), ("message", "b")]),
        (b"data: a\nevent: x\nevent: y\n\n", [("y", "a")]),
        (b"event: x\nevent:\ndata: a\n\n", [("message", "a")]),
        (b"event: x\n\ndata: a\n\n", [("message", "a")]),
        (b": comment\n:\ndata: a\n: between\ndata: b\n\n", [("message", "a\nb")]),
        (b"id: 7\nretry: 10\nother: x\nDATA: x\n data: x\n\ndata: a\n\n", [("message", "a")]),
        (b"data: a\n\ndata: b", [("message", "a")]),
        (b"data: a\n\ndata: b\n", [("message", "a")]),
        (b"data: a\n\ndata: b\r", [("message", "a")]),
        (b"data: a\xff\xc3b\n\n", [("message", "a\ufffd\ufffdb")]),
        (f"data: {SEPARATORS}\n\n".encode(), [("message", SEPARATORS)]),
        (b"\n\n\r\r\n", []),
        (b"", []),
    ],
)
def test_streams_decode_in_any_pieces(stream: bytes, events: list[tuple[str, str]]) -> None:
    assert read(stream) == events
    assert read(*(stream[at : at + 1] for at in range(len(stream)))) == events


def test_an_event_is_there_with_the_end_of_its_empty_line() -> None:
    """A lone CR may be the first half of CR LF, and the event is complete in either case."""
    decoder = EventStreamDecoder()
    assert list(decoder.feed(b"data: a\r\r")) == [ServerSentEvent("message", "a")]
    assert list(decoder.feed(b"\ndata: b\r\n\r")) == [ServerSentEvent("message", "b")]
    assert list(decoder.feed(b"\n")) == []


@pytest.mark.parametrize("chunk", [b"data: " + b"x" * 60, b": " + b"x" * 60, b"data: xxxxx\n" * 10, b"event: x" * 10])
def test_an_event_without_an_end_is_bounded(chunk: bytes) -> None:
    decoder = EventStreamDecoder(100)
    assert len(list(decoder.feed(b"data: fits\n\n" * 100))) == 100
    assert list(decoder.feed(b": quiet\n" * 100)) == []
    with pytest.raises(EventTooLongError):
        list(decoder.feed(chunk + chunk))


ENDS = st.sampled_from([b"\n", b"\r", b"\r\n"])
TEXTS = st.text(st.characters(exclude_characters="\r\n", exclude_categories=["Cs"]), max_size=8)


@given(st.lists(st.tuples(st.lists(TEXTS, min_size=1, max_size=3), ENDS), max_size=5), st.lists(st.integers(1, 9)))
def test_any_text_in_any_pieces(events: list[tuple[list[str], bytes]], cuts: list[int]) -> None:
    """The end of each line is the one of its event; CR before LF would be one end, so LF follows CR LF only."""
    stream = b"".join(
        b"".join(f"data: {line}".encode() + end for line in lines) + end + b": end\n" for lines, end in events
    )
    chunks: list[bytes] = []
    for cut in cuts:
        chunks.append(stream[:cut])
        stream = stream[cut:]
    assert read(*chunks, stream) == [("message", "\n".join(lines)) for lines, _ in events]
