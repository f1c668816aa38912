"""Which secrets the files of a snapshot were searched for; those of older snapshots count as not searched."""

import sqlalchemy as sa
from alembic import op

revision = "0026"
down_revision = "0025"


def upgrade() -> None:
    op.add_column("snapshots", sa.Column("searched", sa.Text(), nullable=False, server_default=sa.text("'[]'")))
