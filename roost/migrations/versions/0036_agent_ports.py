"""Ports of servers, each the address of an agent."""  # noqa: INP001 - Alembic loads it by its path

import sqlalchemy as sa
from alembic import op

revision = "0036"
down_revision = "0035"


def upgrade() -> None:
    op.create_table(
        "agent_ports",
        sa.Column("host_id", sa.String(36), nullable=False),
        sa.Column("port", sa.Integer(), nullable=False, autoincrement=False),
        sa.Column("agent_id", sa.String(36)),
        sa.Column("freed_at", sa.BigInteger()),
        sa.PrimaryKeyConstraint("host_id", "port", name="pk_agent_ports"),
        sa.UniqueConstraint("agent_id", name="uq_agent_ports_agent_id"),
        sa.ForeignKeyConstraint(
            ["agent_id"], ["agents.id"], name="fk_agent_ports_agent_id_agents", ondelete="SET NULL"
        ),
    )
    op.execute("INSERT INTO mirror_versions (name, version) VALUES ('agent_ports', 0)")
