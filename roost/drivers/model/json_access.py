"""Reading JSON that somebody else wrote: what is not of the expected form reads as nothing."""

import json
from typing import Any, cast


def parsed(text: str | bytes) -> Any:
    """The JSON value, or None for what is none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def obj(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def items(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []


def string(value: Any) -> str:
    return value if isinstance(value, str) else ""


def count(value: Any) -> int:
    """A number of things: not negative, and not so large that adding such numbers up overflows a column."""
    return min(value, 2**31) if isinstance(value, int) and value > 0 else 0
