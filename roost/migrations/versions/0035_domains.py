"""Domains, and the proofs that tenants give for them."""  # noqa: INP001 - Alembic loads it by its path

import sqlalchemy as sa
from alembic import op

revision = "0035"
down_revision = "0034"


def upgrade() -> None:
    op.create_table(
        "domains",
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("tenant_id", sa.String(36), nullable=False),
        sa.Column("owner_kind", sa.String(16), nullable=False),
        sa.Column("owner_id", sa.String(63), nullable=False),
        sa.Column("name", sa.String(253), nullable=False),
        sa.Column("holder", sa.String(253)),
        sa.Column("subdomain", sa.String(63)),
        sa.Column("port", sa.Integer()),
        sa.Column("is_protected", sa.Boolean(), nullable=False),
        sa.Column("cid", sa.String(128)),
        sa.Column("status", sa.String(20), nullable=False),
        sa.Column("reason", sa.Text()),
        sa.Column("misses", sa.Integer(), nullable=False),
        sa.Column("checked_at", sa.BigInteger()),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_domains"),
        sa.UniqueConstraint("holder", name="uq_domains_holder"),
        sa.UniqueConstraint("owner_kind", "owner_id", "name", name="uq_domains_owner_kind_owner_id_name"),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.id"], name="fk_domains_tenant_id_tenants"),
    )
    op.create_table(
        "domain_challenges",
        sa.Column("tenant_id", sa.String(36), nullable=False),
        sa.Column("domain", sa.String(253), nullable=False),
        sa.Column("token", sa.String(64), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "domain", name="pk_domain_challenges"),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.id"], name="fk_domain_challenges_tenant_id_tenants"),
    )
    op.execute("INSERT INTO mirror_versions (name, version) VALUES ('domains', 0)")
