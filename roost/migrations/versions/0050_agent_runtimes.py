"""The runtime of each agent; NULL is the default of its server."""  # noqa: INP001 - Alembic loads it by its path

import sqlalchemy as sa
from alembic import op

revision = "0050"
down_revision = "0049"


def upgrade() -> None:
    op.add_column("agents", sa.Column("runtime", sa.String(32)))
