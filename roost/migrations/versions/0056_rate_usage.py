"""What each server admitted in the last seconds, for the rate limits of all."""  # noqa: INP001 - Alembic loads it by its path

import sqlalchemy as sa
from alembic import op

revision = "0056"
down_revision = "0055"


def upgrade() -> None:
    op.create_table(
        "rate_usage",
        sa.Column("process_id", sa.String(36), primary_key=True),
        sa.Column("usage", sa.Text, nullable=False),
        sa.Column("written_at", sa.BigInteger, nullable=False),
    )
