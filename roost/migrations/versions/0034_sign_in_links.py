"""One-time sign-in links of agents."""  # noqa: INP001 - Alembic loads it by its path

import sqlalchemy as sa
from alembic import op

revision = "0034"
down_revision = "0033"


def upgrade() -> None:
    op.create_table(
        "sign_in_links",
        sa.Column("digest", sa.LargeBinary(32), nullable=False),
        sa.Column("agent_id", sa.String(36), nullable=False),
        sa.Column("token_digest", sa.LargeBinary(32), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("digest", name="pk_sign_in_links"),
        sa.ForeignKeyConstraint(
            ["agent_id"],
            ["gateway_tokens.agent_id"],
            name="fk_sign_in_links_agent_id_gateway_tokens",
            ondelete="CASCADE",
        ),
    )
    op.create_index("ix_sign_in_links_agent_id", "sign_in_links", ["agent_id"])
