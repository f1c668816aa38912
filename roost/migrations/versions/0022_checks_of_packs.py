"""Indexes of packs by their last check, and of damaged packs."""

import sqlalchemy as sa
from alembic import op

revision = "0022"
down_revision = "0021"


def upgrade() -> None:
    op.drop_index("ix_packs_checked_at", "packs")
    op.create_index("ix_packs_checked_at_id", "packs", ["checked_at", "id"])
    op.create_index(
        "ix_packs_damaged",
        "packs",
        ["id"],
        sqlite_where=sa.text("damaged = 1"),
        postgresql_where=sa.text("damaged"),
    )
