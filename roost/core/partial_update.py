"""Partial updates: dataclasses whose fields are None where the present value stays."""

from typing import Any


def given_fields(update: object) -> dict[str, Any]:
    """Return the fields that have a value."""
    return {name: value for name, value in vars(update).items() if value is not None}
