"""The state of an agent in its snapshots: a tree of its home beside that of the workspace."""

import sqlalchemy as sa
from alembic import op

revision = "0025"
down_revision = "0024"


def upgrade() -> None:
    op.add_column("snapshots", sa.Column("state_cid", sa.String(128)))
    op.add_column("snapshots", sa.Column("state_files", sa.Integer(), nullable=False, server_default=sa.text("0")))
    op.add_column("snapshots", sa.Column("state_size", sa.BigInteger(), nullable=False, server_default=sa.text("0")))
    op.add_column("snapshots", sa.Column("state_packs", sa.Text(), nullable=False, server_default=sa.text("'[]'")))
    op.add_column("workspace_indexes", sa.Column("state_data", sa.LargeBinary()))
