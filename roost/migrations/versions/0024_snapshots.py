"""Snapshots of agents' workspaces, and the index of what each workspace had at its last one."""

import sqlalchemy as sa
from alembic import op

revision = "0024"
down_revision = "0023"


def upgrade() -> None:
    op.create_table(
        "snapshots",
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("agent_id", sa.String(36), nullable=False),
        sa.Column("tenant_id", sa.String(36), nullable=False),
        sa.Column("cid", sa.String(128), nullable=False),
        sa.Column("commit_sha", sa.String(64)),
        sa.Column("trigger", sa.String(16), nullable=False),
        sa.Column("change_summary", sa.Text(), nullable=False),
        sa.Column("files", sa.Integer(), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("skipped", sa.Text(), nullable=False),
        sa.Column("skipped_count", sa.Integer(), nullable=False),
        sa.Column("label", sa.String(100)),
        sa.Column("packs", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_snapshots"),
        sa.ForeignKeyConstraint(
            ["agent_id"], ["agents.id"], name="fk_snapshots_agent_id_agents", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.id"], name="fk_snapshots_tenant_id_tenants"),
    )
    op.create_index("ix_snapshots_agent_id_created_at_id", "snapshots", ["agent_id", "created_at", "id"])
    op.create_index("ix_snapshots_tenant_id_cid", "snapshots", ["tenant_id", "cid"])
    op.create_table(
        "workspace_indexes",
        sa.Column("agent_id", sa.String(36), nullable=False),
        sa.Column("snapshot_id", sa.String(36)),
        sa.Column("synced_at", sa.BigInteger(), nullable=False),
        sa.Column("data", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("agent_id", name="pk_workspace_indexes"),
        sa.ForeignKeyConstraint(
            ["agent_id"], ["agents.id"], name="fk_workspace_indexes_agent_id_agents", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["snapshot_id"],
            ["snapshots.id"],
            name="fk_workspace_indexes_snapshot_id_snapshots",
            ondelete="SET NULL",
        ),
    )
