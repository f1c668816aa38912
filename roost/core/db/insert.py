"""Inserts that may come second: a row that is there already is an answer, not a failure."""

from sqlalchemy import Connection, Executable
from sqlalchemy.exc import IntegrityError


def inserted(connection: Connection, insert: Executable) -> bool:
    """Whether the row was inserted: not when a constraint is against it. The transaction goes on either way."""
    try:
        with connection.begin_nested():
            connection.execute(insert)
    except IntegrityError:
        return False
    return True
