"""The database: short transactions over SQLite or PostgreSQL, with SQLAlchemy Core."""

from sqlalchemy import Connection

from roost.core.db.database import Database, metadata
from roost.core.db.insert import insert_many, inserted
from roost.core.db.paging import by_creation
from roost.core.db.prepared_query import PreparedQuery
from roost.core.db.types import JsonText, UtcTime

__all__ = [
    "Connection",
    "Database",
    "JsonText",
    "PreparedQuery",
    "UtcTime",
    "by_creation",
    "insert_many",
    "inserted",
    "metadata",
]
