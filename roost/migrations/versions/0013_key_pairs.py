"""API keys as a handle and a secret, and keys for a number of requests."""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"


def upgrade() -> None:
    op.add_column("api_keys", sa.Column("handle", sa.String(20)))
    op.add_column("api_keys", sa.Column("proof", sa.LargeBinary(32)))
    op.add_column("api_keys", sa.Column("max_uses", sa.Integer()))
    op.add_column("api_keys", sa.Column("uses", sa.Integer(), nullable=False, server_default=sa.text("0")))
    op.create_index("uq_api_keys_handle", "api_keys", ["handle"], unique=True)
