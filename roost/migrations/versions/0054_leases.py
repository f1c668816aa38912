"""Leases of periodic work that runs on one server at a time."""  # noqa: INP001 - Alembic loads it by its path

import sqlalchemy as sa
from alembic import op

revision = "0054"
down_revision = "0053"


def upgrade() -> None:
    op.create_table(
        "leases",
        sa.Column("name", sa.String(50), primary_key=True),
        sa.Column("token", sa.BigInteger, nullable=False),
        sa.Column("expires_at", sa.BigInteger, nullable=False),
    )
