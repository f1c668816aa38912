"""Inserts that may come second: a row that is there already is an answer, not a failure. And inserts of many rows."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Executable, Table
from sqlalchemy.exc import IntegrityError


def insert_or_ignore(connection: Connection, insert: Executable) -> bool:
    """Whether the row was inserted: not when a constraint is against it. The transaction goes on either way."""
    try:
        with connection.begin_nested():
            connection.execute(insert)
    except IntegrityError:
        return False
    return True


def insert_many(connection: Connection, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
    """Rows with a value for each column, as the driver takes it: SQLAlchemy would take longer for each than they do."""
    if not rows:
        return
    quoted = connection.dialect.identifier_preparer.quote
    names = [column.name for column in table.columns]
    mark = ":{}" if connection.dialect.name == "sqlite" else "%({})s"
    columns, marks = ", ".join(map(quoted, names)), ", ".join(map(mark.format, names))
    statement = f"INSERT INTO {quoted(table.name)} ({columns}) VALUES ({marks})"  # noqa: S608 - names of our own tables
    connection.exec_driver_sql(statement, list(rows))
