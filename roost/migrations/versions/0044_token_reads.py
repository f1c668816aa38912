"""Reads of gateway tokens, and when a token replaced another."""  # noqa: INP001 - Alembic loads it by its path

import sqlalchemy as sa
from alembic import op

revision = "0044"
down_revision = "0043"


def upgrade() -> None:
    op.add_column("gateway_tokens", sa.Column("rotated_at", sa.BigInteger()))
    op.create_index("ix_gateway_tokens_rotated_at", "gateway_tokens", ["rotated_at"])
    op.create_table(
        "token_reads",
        sa.Column("key_id", sa.String(36), nullable=False),
        sa.Column("agent_id", sa.String(36), nullable=False),
        sa.Column("in_session", sa.Boolean(), nullable=False),
        sa.Column("read_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("key_id", "agent_id", "in_session", name="pk_token_reads"),
        sa.ForeignKeyConstraint(["key_id"], ["api_keys.id"], name="fk_token_reads_key_id_api_keys"),
        sa.ForeignKeyConstraint(
            ["agent_id"],
            ["gateway_tokens.agent_id"],
            name="fk_token_reads_agent_id_gateway_tokens",
            ondelete="CASCADE",
        ),
    )
    op.create_index("ix_token_reads_agent_id", "token_reads", ["agent_id"])
