"""Path routes of agents, and the versions of tables that servers hold in memory."""  # noqa: INP001 - Alembic loads it by its path

import sqlalchemy as sa
from alembic import op

revision = "0032"
down_revision = "0031"


def upgrade() -> None:
    op.create_table(
        "agent_routes",
        sa.Column("agent_id", sa.String(36), nullable=False),
        sa.Column("routes", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("agent_id", name="pk_agent_routes"),
        sa.ForeignKeyConstraint(
            ["agent_id"], ["agents.id"], name="fk_agent_routes_agent_id_agents", ondelete="CASCADE"
        ),
    )
    versions = op.create_table(
        "mirror_versions",
        sa.Column("name", sa.String(36), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_mirror_versions"),
    )
    op.bulk_insert(versions, [{"name": "routes", "version": 0}])
