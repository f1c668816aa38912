"""Payments for private files."""  # noqa: INP001 - Alembic loads it by its path

import sqlalchemy as sa
from alembic import op

revision = "0038"
down_revision = "0037"


def upgrade() -> None:
    op.create_table(
        "payments",
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("tenant_id", sa.String(36), nullable=False),
        sa.Column("instruction_id", sa.String(36), nullable=False),
        sa.Column("instruction_version", sa.Integer(), nullable=False),
        sa.Column("cid", sa.String(128), nullable=False),
        sa.Column("network", sa.String(64), nullable=False),
        sa.Column("asset", sa.String(42), nullable=False),
        sa.Column("payer", sa.String(42), nullable=False),
        sa.Column("nonce", sa.String(66), nullable=False),
        sa.Column("pay_to", sa.String(42), nullable=False),
        sa.Column("amount", sa.String(78), nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("state", sa.String(8), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("claimed_until", sa.BigInteger(), nullable=False),
        sa.Column("transaction_hash", sa.String(100)),
        sa.Column("reason", sa.String(200)),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_payments"),
        sa.UniqueConstraint("network", "asset", "payer", "nonce", name="uq_payments_network_asset_payer_nonce"),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.id"], name="fk_payments_tenant_id_tenants"),
        sa.ForeignKeyConstraint(
            ["instruction_id"],
            ["payment_instructions.id"],
            name="fk_payments_instruction_id_payment_instructions",
        ),
    )
    op.create_index("ix_payments_tenant_id_created_at_id", "payments", ["tenant_id", "created_at", "id"])
    op.create_index("ix_payments_payer_nonce", "payments", ["payer", "nonce"])
