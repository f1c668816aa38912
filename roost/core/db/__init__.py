"""The database: short transactions over SQLite or PostgreSQL, with SQLAlchemy Core."""

from sqlalchemy import Connection

from roost.core.db.database import Database, metadata
from roost.core.db.insert import insert_many, inserted
from roost.core.db.paging import by_creation
from roost.core.db.prepared import Prepared
from roost.core.db.types import JsonText, UtcTime

__all__ = [
    "Connection",
    "Database",
    "JsonText",
    "Prepared",
    "UtcTime",
    "by_creation",
    "insert_many",
    "inserted",
    "metadata",
]
