"""Columns of sealed values, with the associated data of their envelopes, so that all can be resealed.

This module iterates over all such columns of the deployment, in the tables of all slices.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from roost.core.db.database import metadata
from roost.core.seal import KEY_ID, Sealer, UnsealFailed

Column = sa.Column[Any]
_ASSOCIATED_DATA = "associated_data"
_PAGE = 500


@dataclass(frozen=True)
class ResealResult:
    """Result for one page: counts of `renewed` and unopenable (`lost`) envelopes; `more` pages may follow."""

    renewed: int
    lost: int
    more: bool


def sealed_column(name: str, associated_data: str) -> sa.Column[bytes]:
    """Declare a column of envelopes; `associated_data` names columns in braces: `gateway_tokens/{agent_id}`."""
    return sa.Column(name, sa.LargeBinary, nullable=False, info={_ASSOCIATED_DATA: associated_data})


def sealed_columns() -> list[Column]:
    """List the sealed columns of all declared tables."""
    return [column for table in metadata.sorted_tables for column in table.columns if _ASSOCIATED_DATA in column.info]


def key_ids(connection: Connection) -> set[bytes]:
    """Return the ids of all keys in use in the database."""
    found = (connection.execute(sa.select(_key_id(column)).distinct()).scalars() for column in sealed_columns())
    return {bytes(one) for ones in found for one in ones}


def lock_sealed_writes(connection: Connection) -> None:
    """Wait for transactions that write sealed values, and block new ones until this one ends.

    On SQLite, write transactions are exclusive anyway.
    """
    if connection.dialect.name == "postgresql":
        tables = ", ".join(sorted({f'"{column.table.name}"' for column in sealed_columns()}))
        connection.exec_driver_sql(f"LOCK TABLE {tables} IN SHARE ROW EXCLUSIVE MODE")


def reseal_page(connection: Connection, sealer: Sealer, column: Column, skip: int = 0) -> ResealResult:
    """Reseal one page of a column with the sealer's newest key, after `skip` unopenable envelopes.

    A value that is replaced meanwhile is left unchanged.
    """
    table, key = column.table, list(column.table.primary_key.columns)
    newest = sealer.key_id
    outdated = sa.select(table).where(_key_id(column) != newest).order_by(*key).offset(skip).limit(_PAGE)
    rows = connection.execute(outdated).mappings().all()
    lost = 0
    for row in rows:
        associated_data = str(column.info[_ASSOCIATED_DATA]).format_map(_texts(row))
        try:
            resealed = sealer.seal(sealer.open(row[column.name], associated_data).reveal(), associated_data)
        except UnsealFailed:
            lost += 1
            continue
        same = [one == row[one.name] for one in (*key, column)]
        connection.execute(table.update().where(*same).values({column.name: resealed}))
    return ResealResult(len(rows) - lost, lost, len(rows) == _PAGE)


def _key_id(column: Column) -> sa.ColumnElement[bytes]:
    length = KEY_ID.stop - KEY_ID.start
    return sa.func.substr(column, KEY_ID.start + 1, length, type_=sa.LargeBinary())


def _texts(row: Mapping[Any, Any]) -> dict[str, str]:
    return {str(name): str(value) for name, value in row.items() if not isinstance(value, bytes)}
