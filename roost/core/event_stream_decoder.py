"""Decode server-sent events (WHATWG HTML, 9.2.5 and 9.2.6), for every event stream that the project reads."""

import codecs
from collections.abc import Iterable, Iterator
from typing import NamedTuple

MAX_EVENT_CHARACTERS = 8 * 1024**2


class EventTooLongError(ValueError):
    """An event of a stream has more characters than the reader takes."""


class ServerSentEvent(NamedTuple):
    """An event; `name` is `message` unless the stream says another."""

    name: str
    data: str


class EventStreamDecoder:
    """Incremental decoder. Ids and times to reconnect are left to the readers that use them."""

    def __init__(self, max_characters: int = MAX_EVENT_CHARACTERS) -> None:
        self._max_characters = max_characters
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")("replace")  # one byte-order mark at the beginning
        self._after_cr = False
        self._line: list[str] = []
        self._name = ""
        self._data: list[str] = []
        self._size = 0

    def feed(self, chunk: bytes) -> Iterator[ServerSentEvent]:
        """Yield the events that a chunk completes; exhaust it before the next call. Raises EventTooLongError.

        The stream's end completes no event: what no empty line has ended was cut off.
        """
        text = self._decoder.decode(chunk)
        if not text:
            return
        if self._after_cr:  # CR LF ends one line, also in two chunks
            text = text.removeprefix("\n")
        self._after_cr = chunk.endswith(b"\r")
        *lines, rest = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        for line in lines:
            self._add(line)
            whole = "".join(self._line)
            self._line.clear()
            if whole:
                self._read_field(whole)
            elif event := self._complete_event():
                yield event
        self._add(rest)

    def _add(self, piece: str) -> None:
        self._size += len(piece)
        if self._size > self._max_characters:
            raise EventTooLongError
        self._line.append(piece)

    def _read_field(self, line: str) -> None:
        name, _, value = line.partition(":")  # a comment is a field without a name
        value = value.removeprefix(" ")
        if name == "data":
            self._data.append(value)
        elif name == "event":
            self._name = value
        else:
            self._size -= len(line)  # nothing of it is kept

    def _complete_event(self) -> ServerSentEvent | None:
        event = ServerSentEvent(self._name or "message", "\n".join(self._data)) if self._data else None
        self._name, self._size = "", 0
        self._data.clear()
        return event


def decode_events(chunks: Iterable[bytes]) -> Iterator[ServerSentEvent]:
    """Yield the events of a whole stream. Raises EventTooLongError."""
    decoder = EventStreamDecoder()
    for chunk in chunks:
        yield from decoder.feed(chunk)
