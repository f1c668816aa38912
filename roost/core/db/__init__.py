"""The database: short transactions over SQLite or PostgreSQL, with SQLAlchemy Core."""

from sqlalchemy import Connection

from roost.core.db.changes import DataChange, assign_tenant, record_change, take_changes
from roost.core.db.database import Database, metadata, publish_on_commit, write_change
from roost.core.db.records import (
    PreparedQuery,
    insert_many,
    insert_or_ignore,
    page_by_creation,
    read_one,
    read_record,
    record_values,
    update_or_ignore,
)
from roost.core.db.types import ActorText, IdQuery, JsonText, UtcTime

__all__ = [
    "ActorText",
    "Connection",
    "DataChange",
    "Database",
    "IdQuery",
    "JsonText",
    "PreparedQuery",
    "UtcTime",
    "assign_tenant",
    "insert_many",
    "insert_or_ignore",
    "metadata",
    "page_by_creation",
    "publish_on_commit",
    "read_one",
    "read_record",
    "record_change",
    "record_values",
    "take_changes",
    "update_or_ignore",
    "write_change",
]
