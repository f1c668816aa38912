"""First questions of conversations, and answers that are being written."""  # noqa: INP001 - Alembic loads it by its path

import sqlalchemy as sa
from alembic import op

revision = "0046"
down_revision = "0045"


def upgrade() -> None:
    agent = sa.ForeignKey("agents.id", ondelete="CASCADE")
    op.create_table(
        "conversations",
        sa.Column("agent_id", sa.String(36), agent, primary_key=True),
        sa.Column("id", sa.String(40), primary_key=True),
        sa.Column("question", sa.String(200), nullable=False),
        sa.Column("answering_since", sa.BigInteger()),
    )
