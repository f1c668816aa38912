"""Payment instructions, and the CIDs of private files that they are attached to."""  # noqa: INP001 - Alembic loads it by its path

import sqlalchemy as sa
from alembic import op

revision = "0037"
down_revision = "0036"


def upgrade() -> None:
    op.create_table(
        "payment_instructions",
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("tenant_id", sa.String(36), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("payment_requirements", sa.Text(), nullable=False),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("description", sa.String(1000), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.Column("deleted_at", sa.BigInteger()),
        sa.PrimaryKeyConstraint("id", name="pk_payment_instructions"),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.id"], name="fk_payment_instructions_tenant_id_tenants"),
    )
    op.create_index(
        "ix_payment_instructions_tenant_id_created_at_id", "payment_instructions", ["tenant_id", "created_at", "id"]
    )
    op.create_table(
        "payment_instruction_cids",
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("tenant_id", sa.String(36), nullable=False),
        sa.Column("instruction_id", sa.String(36), nullable=False),
        sa.Column("cid", sa.String(128), nullable=False),
        sa.Column("file_cid", sa.String(128), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_payment_instruction_cids"),
        sa.UniqueConstraint("tenant_id", "cid", name="uq_payment_instruction_cids_tenant_id_cid"),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.id"], name="fk_payment_instruction_cids_tenant_id_tenants"),
        sa.ForeignKeyConstraint(
            ["instruction_id"],
            ["payment_instructions.id"],
            name="fk_payment_instruction_cids_instruction_id_payment_instructions",
        ),
    )
    op.create_index(
        "ix_payment_instruction_cids_instruction_id_created_at_id",
        "payment_instruction_cids",
        ["instruction_id", "created_at", "id"],
    )
