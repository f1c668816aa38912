"""Lenient access to foreign JSON: a value of an unexpected type reads as empty."""

import json
from typing import Any, cast

Json = dict[str, Any]


def parse_json(text: str | bytes) -> Any:
    """Parse JSON; return None if it is malformed."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def as_object(value: Any) -> Json:
    return cast("Json", value) if isinstance(value, dict) else {}


def as_list(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []


def as_string(value: Any) -> str:
    return value if isinstance(value, str) else ""


def as_count(value: Any) -> int:
    """Return a count between 0 and 2**31, so that sums of counts do not overflow a database column."""
    return min(value, 2**31) if isinstance(value, int) and value > 0 else 0
