"""Masking of known secret values in untrusted text, by exact matching in linear time.

Each value is matched as it is, and as encoded in JSON, URLs and sanitized lines. Values of several lines are matched
line by line, because text arrives in lines. Values shorter than four characters are not masked, because the masks would
reveal them.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from urllib.parse import quote

from roost.core.sanitize import sanitize_line
from roost.core.sensitive import Sensitive

MASK = "[redacted]"
_MIN_LENGTH, _MAX_FORMS = 4, 2_000


class SecretMask:
    def __init__(self, values: Iterable[Sensitive[str]] = ()) -> None:
        lines = (line for value in values for line in value.reveal().splitlines())
        forms = {form for line in lines for form in _forms(line) if len(form) >= _MIN_LENGTH}
        self._forms: Sequence[str] = list(islice(sorted(forms, key=len, reverse=True), _MAX_FORMS))

    def __call__(self, text: str) -> str:
        """Replace every occurrence in `text`; overlapping occurrences are replaced together."""
        found = sorted(span for form in self._forms if form in text for span in _spans(form, text))
        if not found:
            return text
        parts: list[str] = []
        end = 0
        for start, stop in found:
            if start >= end:
                parts += text[end:start], MASK
            end = max(end, stop)
        return "".join([*parts, text[end:]])


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
