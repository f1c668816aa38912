"""The server that has the bytes of a resumable upload."""  # noqa: INP001 - Alembic loads it by its path

import sqlalchemy as sa
from alembic import op

revision = "0055"
down_revision = "0054"


def upgrade() -> None:
    op.add_column("transfers", sa.Column("host_id", sa.String(36)))
