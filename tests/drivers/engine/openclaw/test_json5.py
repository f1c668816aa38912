import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost.drivers.engine.openclaw import json5

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**12), 10**12)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(VALUES)
def test_json_means_the_same(value: object) -> None:
    assert json5.loads(json.dumps(value)) == value
    assert json5.loads(json.dumps(value, indent=2, ensure_ascii=False)) == value


@given(st.text())
def test_any_text_is_a_value_or_a_value_error(text: str) -> None:
    with contextlib.suppress(ValueError):
        json.dumps(json5.loads(text))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("{a: 1,}", {"a": 1}),
        ("// head\n{/* x */ $b_1: 'it\\'s \"so\"', /* y\n */}", {"$b_1": 'it\'s "so"'}),
        ('{"url": "http://x//y", "c": "/* no */"}', {"url": "http://x//y", "c": "/* no */"}),
        ("[+1, -.5, 5., 0x1F, -0xff, 1e3, 5.e2]", [1, -0.5, 5, 31, -255, 1000.0, 500.0]),
        ("'a\\\nb\\x41\\v\\0'", "abA\v\0"),
        ("{true: true, null: null}", {"true": True, "null": None}),
        ("[1, 2, ]", [1, 2]),
    ],
)
def test_what_json5_adds(text: str, value: object) -> None:
    assert json5.loads(text) == value


@pytest.mark.parametrize(
    "text",
    ["", "{", "[1 2]", "{a:1 b:2}", "{a: b}", "tru e", "/* open", "'open", "[010]", "[1,,2]", "{a}", "[" * 100, "@"],
)
def test_what_it_does_not_know_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        json5.loads(text)
