"""Secrets of a tenant and which agents have them."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    op.create_table(
        "secrets",
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("tenant_id", sa.String(36), nullable=False),
        sa.Column("name", sa.String(128), nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("sealed", sa.LargeBinary(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_secrets"),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.id"], name="fk_secrets_tenant_id_tenants"),
        sa.UniqueConstraint("tenant_id", "name", name="uq_secrets_tenant_id_name"),
    )
    op.create_table(
        "agent_secrets",
        sa.Column("agent_id", sa.String(36), nullable=False),
        sa.Column("secret_id", sa.String(36), nullable=False),
        sa.Column("attached_at", sa.BigInteger(), nullable=False),
        sa.Column("synced_version", sa.Integer()),
        sa.PrimaryKeyConstraint("agent_id", "secret_id", name="pk_agent_secrets"),
        sa.ForeignKeyConstraint(
            ["agent_id"], ["agents.id"], name="fk_agent_secrets_agent_id_agents", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["secret_id"], ["secrets.id"], name="fk_agent_secrets_secret_id_secrets"),
    )
    op.create_index("ix_agent_secrets_secret_id", "agent_secrets", ["secret_id"])
