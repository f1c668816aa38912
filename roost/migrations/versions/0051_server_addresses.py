"""How the servers of a deployment reach each other, and agents that one of them gets from another."""  # noqa: INP001 - Alembic loads it by its path

import sqlalchemy as sa
from alembic import op

revision = "0051"
down_revision = "0050"


def upgrade() -> None:
    op.add_column("hosts", sa.Column("address", sa.String(300)))
    op.create_table(
        "agent_copies",
        sa.Column("host_id", sa.String(36), primary_key=True),
        sa.Column("agent_id", sa.String(36), primary_key=True),
    )
    op.create_table(
        "server_certificates",
        sa.Column("id", sa.String(36), primary_key=True),
        sa.Column("sealed", sa.LargeBinary, nullable=False),
    )
