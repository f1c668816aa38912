"""A query that is asked all the time: compiled once, and on SQLite handed to the driver as it is.

SQLAlchemy takes longer to hand a small query over than SQLite takes to answer it. What goes in and what comes out is
the driver's own: numbers, text and bytes; whoever needs more of a column than that asks the usual way.
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
        """The first row, its columns in the order of the query."""
        if connection.dialect.name != "sqlite":
            return connection.execute(self._query, values).first()
        driver: Any = connection.connection.dbapi_connection
        cursor = driver.execute(self._text, {**self._constants, **values})
        try:
            return cursor.fetchone()
        finally:
            cursor.close()  # it would hold the snapshot
