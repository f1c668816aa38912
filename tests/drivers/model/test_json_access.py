from typing import Any

import pytest

from roost.drivers.model import json_access


@pytest.mark.parametrize("text", ["", "{", b"\xff", "[" * 100_000])
def test_malformed_json_reads_as_none(text: str | bytes) -> None:
    assert json_access.parse_json(text) is None


@pytest.mark.parametrize("value", [None, 1, True, "x", [1], {"a": 1}])
def test_only_the_expected_form_is_read(value: Any) -> None:
    assert json_access.as_object(value) == (value if isinstance(value, dict) else {})
    assert json_access.as_list(value) == (value if isinstance(value, list) else [])
    assert json_access.as_string(value) == (value if isinstance(value, str) else "")


@pytest.mark.parametrize(("value", "count"), [(7, 7), (0, 0), (-7, 0), (10**30, 2**31), (1.5, 0), ("7", 0), (None, 0)])
def test_a_count_is_a_small_natural_number(value: Any, count: int) -> None:
    assert json_access.as_count(value) == count
