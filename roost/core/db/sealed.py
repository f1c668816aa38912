"""Columns of sealed values. Each says where its envelopes belong, so that all can be found and sealed anew.

This room owns the walk over every such column of the deployment, whichever room's table it is in.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from roost.core.db.database import metadata
from roost.core.seal import KEY_ID, Sealer, UnsealFailed

Column = sa.Column[Any]
_PLACE = "place"
_PAGE = 500


@dataclass(frozen=True)
class ResealResult:
    """One page of work: how many were `renewed`, how many could not be opened (`lost`), whether there is `more`."""

    renewed: int
    lost: int
    more: bool


def sealed_column(name: str, place: str) -> sa.Column[bytes]:
    """A column of envelopes; `place` has names of the row's columns in braces: `gateway_tokens/{agent_id}`."""
    return sa.Column(name, sa.LargeBinary, nullable=False, info={_PLACE: place})


def sealed_columns() -> list[Column]:
    """Every sealed column of the tables that have been declared."""
    return [column for table in metadata.sorted_tables for column in table.columns if _PLACE in column.info]


def key_ids(connection: Connection) -> set[bytes]:
    """The ids of all keys that something in the database is sealed with."""
    found = (connection.execute(sa.select(_key_id(column)).distinct()).scalars() for column in sealed_columns())
    return {bytes(one) for ones in found for one in ones}


def lock_sealed_writes(connection: Connection) -> None:
    """Wait for the transactions that are writing sealed values, and hold up new ones until this one ends.

    On SQLite a transaction that writes is alone anyway.
    """
    if connection.dialect.name == "postgresql":
        tables = ", ".join(sorted({f'"{column.table.name}"' for column in sealed_columns()}))
        connection.exec_driver_sql(f"LOCK TABLE {tables} IN SHARE ROW EXCLUSIVE MODE")


def reseal_page(connection: Connection, sealer: Sealer, column: Column, skip: int = 0) -> ResealResult:
    """Seal one page of a column anew that is not under the sealer's newest key; `skip` those that nothing opens.

    A value that is replaced meanwhile stays as it is then.
    """
    table, key = column.table, list(column.table.primary_key.columns)
    newest = sealer.key_id
    outdated = sa.select(table).where(_key_id(column) != newest).order_by(*key).offset(skip).limit(_PAGE)
    rows = connection.execute(outdated).mappings().all()
    lost = 0
    for row in rows:
        place = str(column.info[_PLACE]).format_map(_texts(row))
        try:
            fresh = sealer.seal(sealer.open(row[column.name], place).reveal(), place)
        except UnsealFailed:
            lost += 1
            continue
        same = [one == row[one.name] for one in (*key, column)]
        connection.execute(table.update().where(*same).values({column.name: fresh}))
    return ResealResult(len(rows) - lost, lost, len(rows) == _PAGE)


def _key_id(column: Column) -> sa.ColumnElement[bytes]:
    length = KEY_ID.stop - KEY_ID.start
    return sa.func.substr(column, KEY_ID.start + 1, length, type_=sa.LargeBinary())


def _texts(row: Mapping[Any, Any]) -> dict[str, str]:
    return {str(name): str(value) for name, value in row.items() if not isinstance(value, bytes)}
