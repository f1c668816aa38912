"""Manifests of agents' Git repositories, whose packs are objects of the blob store."""  # noqa: INP001 - Alembic loads it by its path

import sqlalchemy as sa
from alembic import op

revision = "0053"
down_revision = "0052"


def upgrade() -> None:
    op.create_table(
        "git_repositories",
        sa.Column("agent_id", sa.String(36), sa.ForeignKey("agents.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("generation", sa.BigInteger, nullable=False),
        sa.Column("main", sa.String(40)),
        sa.Column("pending", sa.String(40)),
        sa.Column("packs", sa.Text, nullable=False),
        sa.Column("changed_at", sa.BigInteger, nullable=False),
        sa.Column("collected_at", sa.BigInteger, nullable=False),
    )
