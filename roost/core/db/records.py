"""Dataclasses from rows and rows from dataclasses, by equal names."""

from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import cache
from typing import Any, TypeVar

import sqlalchemy as sa

T = TypeVar("T")


def read_one(
    connection: sa.Connection,
    query: sa.Select[Any],
    build: Callable[[Any], T],
    values: Mapping[str, Any] | None = None,
) -> T | None:
    """Return what `build` makes of the first row; None without a row. `values` are those of the query's parameters."""
    row = connection.execute(query, values).first()
    return None if row is None else build(row)


def read_record(kind: type[T], row: Any, /, **converted: Any) -> T:
    """Build a dataclass from a row's columns with the names of its fields; `converted` replaces or adds fields.

    Fields that have neither keep their default.
    """
    names = _field_names(kind)
    return kind(**{name: value for name, value in zip(row._fields, row, strict=True) if name in names} | converted)


def record_values(table: sa.Table, record: object, /, **converted: Any) -> dict[str, Any]:
    """Return a record's attributes with the names of the table's columns; `converted` replaces or adds values."""
    return {name: getattr(record, name) for name in table.columns.keys() if hasattr(record, name)} | converted  # noqa: SIM118 - a collection of columns, no dict


@cache
def _field_names(kind: Any) -> frozenset[str]:
    return frozenset(field.name for field in fields(kind))
