"""Frequent queries, compiled once and on SQLite passed to the driver directly.

SQLAlchemy takes longer to submit a small query than SQLite takes to run it. Parameters and results are the driver's
types: numbers, text and bytes.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Select
from sqlalchemy.dialects import sqlite


class PreparedQuery:
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
