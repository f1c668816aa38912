"""The default runtime of each server, if other servers can serve its agents, and whether they shall."""  # noqa: INP001 - Alembic loads it by its path

import sqlalchemy as sa
from alembic import op

revision = "0052"
down_revision = "0051"


def upgrade() -> None:
    op.add_column("hosts", sa.Column("shared_runtime", sa.String(32)))
    op.add_column("hosts", sa.Column("is_leaving", sa.Boolean(), nullable=False, server_default=sa.false()))
