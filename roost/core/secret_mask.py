"""Known secret values made unreadable in text that others wrote: exact matching, in time that grows with the text.

What is looked for is each value as it is, and as JSON, a URL and a terminal-safe line write it. A value of several
lines is looked for line by line, because text comes in lines. Values that are shorter than four characters are no
secrets: masking them would spell them out.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from urllib.parse import quote

from roost.core.sanitize import sanitize_line
from roost.core.sensitive import Sensitive

MASK = "[redacted]"
_SHORTEST, _MOST_FORMS = 4, 2_000


class SecretMask:
    def __init__(self, values: Iterable[Sensitive[str]] = ()) -> None:
        pieces = (piece for value in values for piece in value.reveal().splitlines())
        forms = {form for piece in pieces for form in _forms(piece) if len(form) >= _SHORTEST}
        self._forms: Sequence[str] = list(islice(sorted(forms, key=len, reverse=True), _MOST_FORMS))

    def __call__(self, text: str) -> str:
        """`text` with every occurrence replaced; where values overlap, all of what they cover."""
        found = sorted(span for form in self._forms if form in text for span in _spans(form, text))
        if not found:
            return text
        shown: list[str] = []
        end = 0
        for start, stop in found:
            if start >= end:
                shown += text[end:start], MASK
            end = max(end, stop)
        return "".join([*shown, text[end:]])


def _forms(value: str) -> Iterator[str]:
    value = value.strip()
    yield value
    yield sanitize_line(value)
    yield json.dumps(value)[1:-1]
    yield json.dumps(value, ensure_ascii=False)[1:-1]
    yield quote(value, safe="")
    yield quote(value)


def _spans(form: str, text: str) -> Iterator[tuple[int, int]]:
    start = text.find(form)
    while start >= 0:
        yield start, start + len(form)
        start = text.find(form, start + len(form))
