"""Helpers of all SQL: dataclasses and rows by equal names, tolerant inserts, pages, prepared queries."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from datetime import datetime
from functools import cache
from typing import Any, TypeVar

import sqlalchemy as sa
from sqlalchemy import Connection, Executable, Select, Table
from sqlalchemy.dialects import sqlite
from sqlalchemy.exc import IntegrityError

from roost.core.db.types import UtcTime
from roost.core.page_cursor import PageCursor

T = TypeVar("T")


def read_one(
    connection: Connection,
    query: Select[Any],
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


def record_values(table: Table, record: object, /, **converted: Any) -> dict[str, Any]:
    """Return a record's attributes with the names of the table's columns; `converted` replaces or adds values."""
    return {name: getattr(record, name) for name in table.columns.keys() if hasattr(record, name)} | converted  # noqa: SIM118 - a collection of columns, no dict


def insert_or_ignore(connection: Connection, insert: Executable) -> bool:
    """Insert a row unless a constraint forbids it; return whether it was inserted."""
    try:
        with connection.begin_nested():
            connection.execute(insert)
    except IntegrityError:
        return False
    return True


update_or_ignore = insert_or_ignore
"""The same for an update."""


def insert_many(connection: Connection, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert rows with driver values for every column, much faster than through SQLAlchemy."""
    if not rows:
        return
    quoted = connection.dialect.identifier_preparer.quote
    names = [column.name for column in table.columns]
    mark = ":{}" if connection.dialect.name == "sqlite" else "%({})s"
    columns, marks = ", ".join(map(quoted, names)), ", ".join(map(mark.format, names))
    statement = f"INSERT INTO {quoted(table.name)} ({columns}) VALUES ({marks})"  # noqa: S608 - names of our own tables
    connection.exec_driver_sql(statement, list(rows))


def split_values(values: Iterable[T]) -> Iterator[Sequence[T]]:
    """Yield the values in parts that a statement takes; SQLite allows 32,766 in all."""
    every = list(values)
    for at in range(0, len(every), _VALUES):
        yield every[at : at + _VALUES]


_VALUES = 30_000


def page_by_creation(
    query: Select[Any],
    created_at: sa.ColumnElement[datetime],
    row_id: sa.ColumnElement[str],
    after: PageCursor | None = None,
    *,
    ascending: bool = False,
) -> Select[Any]:
    """Restrict a query to the rows after `after`, newest first unless `ascending`."""
    if after is not None:
        key = sa.tuple_(created_at, row_id)
        position = sa.tuple_(sa.literal(after.created_at, UtcTime), sa.literal(after.id))
        query = query.where(key > position if ascending else key < position)
    return query.order_by(created_at, row_id) if ascending else query.order_by(created_at.desc(), row_id.desc())


def without_index(column: sa.ColumnElement[str]) -> sa.ColumnElement[str]:
    """Return an expression with the values of a column, for which the database uses no index of it."""
    return column.concat("")


class PreparedQuery:
    """A frequent query, compiled once and on SQLite passed to the driver directly.

    SQLAlchemy takes longer to submit a small query than SQLite takes to run it. Parameters and results are the driver's
    types: numbers, text and bytes.
    """

    def __init__(self, query: Select[*tuple[Any, ...]]) -> None:
        self._query = query
        compiled = query.compile(dialect=sqlite.dialect(paramstyle="named"))  # pyright: ignore[reportUnknownMemberType] - a module with a class of no type
        self._text = str(compiled)
        self._constants: Mapping[str, Any] = compiled.params

    def first(self, connection: Connection, values: Mapping[str, Any]) -> Sequence[Any] | None:
        """Return the first row with its columns in the order of the query, or None."""
        if connection.dialect.name != "sqlite":
            return connection.execute(self._query, values).first()
        driver: Any = connection.connection.dbapi_connection
        cursor = driver.execute(self._text, {**self._constants, **values})
        try:
            return cursor.fetchone()
        finally:
            cursor.close()  # an open cursor would keep the snapshot


@cache
def _field_names(kind: Any) -> frozenset[str]:
    return frozenset(field.name for field in fields(kind))
