"""The operator's tenant publishes under its own name; reasons for publishing what the check calls dangerous."""  # noqa: INP001 - Alembic loads it by its path

import sqlalchemy as sa
from alembic import op

revision = "0047"
down_revision = "0046"


def upgrade() -> None:
    owners = sa.table("hub_owners", sa.column("handle"))
    op.execute(owners.delete().where(owners.c.handle == "roost"))
    op.add_column("hub_versions", sa.Column("acknowledgement", sa.Text()))
