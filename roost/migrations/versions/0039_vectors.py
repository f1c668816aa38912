"""Vectors of files, the chunks of their texts, and the groups that agents may search."""  # noqa: INP001 - Alembic loads it by its path

import sqlalchemy as sa
from alembic import op

revision = "0039"
down_revision = "0038"


def upgrade() -> None:
    op.create_table(
        "file_vectors",
        sa.Column("file_id", sa.String(36), nullable=False),
        sa.Column("tenant_id", sa.String(36), nullable=False),
        sa.Column("operation_id", sa.String(36), nullable=False),
        sa.Column("state", sa.String(10), nullable=False),
        sa.Column("model", sa.String(300), nullable=False),
        sa.Column("dimension", sa.Integer(), nullable=False),
        sa.Column("chunks", sa.Integer(), nullable=False),
        sa.Column("chunks_done", sa.Integer(), nullable=False),
        sa.Column("reason", sa.String(300)),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("file_id", name="pk_file_vectors"),
        sa.ForeignKeyConstraint(["file_id"], ["files.id"], name="fk_file_vectors_file_id_files", ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.id"], name="fk_file_vectors_tenant_id_tenants"),
    )
    op.create_index("ix_file_vectors_tenant_id", "file_vectors", ["tenant_id"])
    op.create_table(
        "vector_segments",
        sa.Column("file_id", sa.String(36), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False, autoincrement=False),
        sa.Column("matrix", sa.LargeBinary()),
        sa.Column("chunks", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("file_id", "number", name="pk_vector_segments"),
        sa.ForeignKeyConstraint(
            ["file_id"],
            ["file_vectors.file_id"],
            name="fk_vector_segments_file_id_file_vectors",
            ondelete="CASCADE",
        ),
    )
    op.create_table(
        "vector_grants",
        sa.Column("group_id", sa.String(36), nullable=False),
        sa.Column("agent_id", sa.String(36), nullable=False),
        sa.Column("tenant_id", sa.String(36), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("group_id", "agent_id", name="pk_vector_grants"),
        sa.ForeignKeyConstraint(
            ["group_id"], ["groups.id"], name="fk_vector_grants_group_id_groups", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["agent_id"],
            ["gateway_tokens.agent_id"],
            name="fk_vector_grants_agent_id_gateway_tokens",
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.id"], name="fk_vector_grants_tenant_id_tenants"),
    )
    op.create_index("ix_vector_grants_agent_id", "vector_grants", ["agent_id"])
