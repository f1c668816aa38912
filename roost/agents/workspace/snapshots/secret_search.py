"""Find the values of known secrets in a stream of bytes, also encoded as base64, for URLs or as JSON. Pure.

A value of less than 8 bytes is not searched, because it would be found in many files that do not contain the secret.
Of a long value the first 1,024 bytes count. Encoded forms are searched for values of at least 15 bytes; base64 with
line breaks is not found. No method tells a value.

The search reads words of 8 bytes of the stream, one every `step` bytes: a text of `step + 7` bytes contains one of
them, wherever it begins. So any number of values takes the same time, and longer ones less: 500 MB/s if all have 31
bytes, 230 MB/s if many have 15, 30 MB/s if many have less. A few long values are faster to search one by one: 1 GB/s
for two of 32 bytes.
"""

import base64
import json
import re
import sys
from collections.abc import Iterator, Mapping
from urllib.parse import quote, quote_plus

SHORTEST_VALUE = 8
_COMPARED = 1024
"""Bytes of a text that are searched."""
_WORD = 8
_SHORTEST_ENCODED = 2 * _WORD - 1
_STEPS = (1, 2, 4, 8, 16, 24, 32, _COMPARED)
"""With the last one, all texts are searched one by one."""
_FIND_WORK = 1.2
"""Time to search a text of one byte, compared with reading a word every 8 bytes; half as long, if it has two bytes."""
_HEX = re.compile("%..")
_URL_SAFE = bytes.maketrans(b"+/", b"-_")


class SecretSearch:
    """Search of one stream after another: `reset`, then `feed` every chunk."""

    def __init__(self, values: Mapping[str, bytes]) -> None:
        """`values` are the values of secrets by their names."""
        needles = {text[:_COMPARED]: name for name, value in values.items() for text in _list_texts(value)}
        self._step = _best_step(needles)
        self._short = {needle: name for needle, name in needles.items() if len(needle) < _reach(self._step)}
        self._words: dict[int, dict[bytes, str]] = {}
        for needle in needles.keys() - self._short.keys():
            for at in range(self._step):
                word = int.from_bytes(needle[at : at + _WORD], sys.byteorder)
                self._words.setdefault(word, {})[needle] = needles[needle]
        self._known = frozenset(self._words)
        self._overlap = max(map(len, needles), default=1) - 1
        self._tail = b""

    def reset(self) -> None:
        """Begin another stream."""
        self._tail = b""

    def feed(self, chunk: bytes | bytearray | memoryview) -> str | None:
        """Return the name of a secret whose value ends in this chunk, if there is one."""
        data = self._tail + bytes(chunk)  # no copy, if the chunk is bytes and the first one
        self._tail = data[-self._overlap :] if self._overlap else b""
        return _find_needle(data, self._short) or self._find_by_words(data)

    def _find_by_words(self, data: bytes) -> str | None:
        for offset in range(0, _WORD if self._known else 0, self._step):
            words = memoryview(data)[offset : offset + (len(data) - offset) // _WORD * _WORD].cast("Q")
            some = words[:: max(1, self._step // _WORD)]
            if self._known.isdisjoint(some):
                continue
            for word in self._known.intersection(some):
                if name := _find_needle(data, self._words[word]):
                    return name
        return None


def _find_needle(data: bytes, needles: Mapping[bytes, str]) -> str | None:
    return next((name for needle, name in needles.items() if needle in data), None)


def _reach(step: int) -> int:
    """Return how long a text must be to contain a word that is read, wherever it begins."""
    return step + _WORD - 1


def _best_step(needles: Mapping[bytes, str]) -> int:
    """Return the step of the least work: shorter texts are searched one by one."""

    def work(step: int) -> float:
        finds = sum(_FIND_WORK / len(needle) for needle in needles if len(needle) < _reach(step))
        return finds + (_WORD / step if any(len(needle) >= _reach(step) for needle in needles) else 0)

    return min(_STEPS, key=work)


def _list_texts(value: bytes) -> Iterator[bytes]:
    """Yield the texts by which a value is found."""
    if len(value) >= SHORTEST_VALUE:
        yield value
    if len(value) >= _SHORTEST_ENCODED:
        for form in (quote(value), quote(value, safe=""), quote_plus(value)):
            yield form.encode()
            yield _HEX.sub(lambda found: found[0].lower(), form).encode()
        yield json.dumps(value.decode("utf-8", "replace"), ensure_ascii=False)[1:-1].encode()
        for shift in range(3):
            encoded = _encode_inside(value, shift)
            yield encoded
            yield encoded.translate(_URL_SAFE)


def _encode_inside(value: bytes, shift: int) -> bytes:
    """Return the characters of base64 that only depend on the value, if `shift` bytes are before it in its group."""
    encoded = base64.b64encode(bytes(shift) + value)
    return encoded[(0, 2, 3)[shift] : (shift + len(value)) * 8 // 6]
