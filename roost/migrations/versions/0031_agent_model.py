"""The model that an agent is to use by default."""  # noqa: INP001 - Alembic loads it by its path

import sqlalchemy as sa
from alembic import op

revision = "0031"
down_revision = "0030"


def upgrade() -> None:
    op.add_column("agents", sa.Column("model", sa.String(200)))
