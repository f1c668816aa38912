"""Actors of events and operations: who changed something, and who asked for background work."""  # noqa: INP001 - Alembic loads it by its path

import sqlalchemy as sa
from alembic import op

revision = "0043"
down_revision = "0042"


def upgrade() -> None:
    op.add_column("events", sa.Column("actor", sa.Text()))
    op.add_column("operations", sa.Column("actor", sa.Text()))
