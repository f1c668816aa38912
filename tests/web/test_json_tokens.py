"""How many values a body has: found in whatever pieces it comes, and hidden by nothing that a text may hold."""

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from roost.web.json_tokens import JsonTokenCounter

SIGNS = st.text(alphabet='\\",[{}]: \u00fc\u2200\u2c5b\0', max_size=8)
JSON = st.recursive(
    st.none() | st.integers() | SIGNS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(SIGNS, inner, max_size=4),
    max_leaves=20,
)


def count_signs(value: Any) -> int:
    """Commas and opening brackets that JSON of this has outside of its texts."""
    if not isinstance(value, list | dict):
        return 0
    inner: list[Any] = list(value.values() if isinstance(value, dict) else value)
    return max(1, len(inner)) + sum(count_signs(one) for one in inner)


def counted(body: bytes, size: int) -> int:
    values = JsonTokenCounter()
    for at in range(0, len(body), size):
        values.add(body[at : at + size])
    return values.count


@given(JSON, st.integers(1, 9), st.booleans())
@example({'\\"': ["\\", '"', "[,{"]}, 1, True)
def test_any_json_in_any_pieces(value: Any, size: int, is_ascii: bool) -> None:
    assert counted(json.dumps(value, ensure_ascii=is_ascii).encode(), size) == count_signs(value)


@pytest.mark.parametrize("coding", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
def test_nothing_is_hidden_in_another_coding(coding: str) -> None:
    # one sign has the byte of a quotation mark in it, the other that of a backslash
    body = json.dumps(["\u2200\u2c5c\u2200"] + [[]] * 1000, ensure_ascii=False).encode(coding)
    assert counted(body, 65_536) >= 2000
    assert counted(body, 512) >= 2000
    assert counted(body, 1) >= 2000
