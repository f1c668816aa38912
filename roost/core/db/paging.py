"""Paging of lists by creation time with `roost.core.page_cursor`."""

from datetime import datetime
from typing import Any

import sqlalchemy as sa

from roost.core.db.types import UtcTime
from roost.core.page_cursor import PageCursor


def page_by_creation(
    query: sa.Select[Any],
    created_at: sa.ColumnElement[datetime],
    row_id: sa.ColumnElement[str],
    after: PageCursor | None = None,
    *,
    ascending: bool = False,
) -> sa.Select[Any]:
    """Restrict a query to the rows after `after`, newest first unless `ascending`."""
    if after is not None:
        key = sa.tuple_(created_at, row_id)
        position = sa.tuple_(sa.literal(after.created_at, UtcTime), sa.literal(after.id))
        query = query.where(key > position if ascending else key < position)
    return query.order_by(created_at, row_id) if ascending else query.order_by(created_at.desc(), row_id.desc())
