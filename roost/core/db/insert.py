"""Inserts and updates that tolerate existing rows, and bulk inserts."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Executable, Table
from sqlalchemy.exc import IntegrityError


def insert_or_ignore(connection: Connection, insert: Executable) -> bool:
    """Insert a row unless a constraint forbids it; return whether it was inserted."""
    return _execute_or_ignore(connection, insert)


def update_or_ignore(connection: Connection, update: Executable) -> bool:
    """Update a row unless a constraint forbids it; return whether it was updated."""
    return _execute_or_ignore(connection, update)


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


def _execute_or_ignore(connection: Connection, statement: Executable) -> bool:
    try:
        with connection.begin_nested():
            connection.execute(statement)
    except IntegrityError:
        return False
    return True
