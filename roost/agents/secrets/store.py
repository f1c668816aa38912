"""The tables of secrets and every line of SQL about them."""

import sqlalchemy as sa

from roost.core.db import UtcTime, metadata

secrets = sa.Table(
    "secrets",
    metadata,
    sa.Column("id", sa.String(36), primary_key=True),
    sa.Column("tenant_id", sa.String(36), sa.ForeignKey("tenants.id"), nullable=False),
    sa.Column("name", sa.String(128), nullable=False),
    sa.Column("kind", sa.String(16), nullable=False),
    sa.Column("sealed", sa.LargeBinary, nullable=False),
    sa.Column("version", sa.Integer, nullable=False),
    sa.Column("created_at", UtcTime, nullable=False),
    sa.Column("updated_at", UtcTime, nullable=False),
    sa.UniqueConstraint("tenant_id", "name"),
)

agent_secrets = sa.Table(
    "agent_secrets",
    metadata,
    sa.Column("agent_id", sa.String(36), sa.ForeignKey("agents.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("secret_id", sa.String(36), sa.ForeignKey("secrets.id"), primary_key=True, index=True),
    sa.Column("attached_at", UtcTime, nullable=False),
    sa.Column("synced_version", sa.Integer),
)
