"""Browser sessions of the dashboard, and the one-time links that open them."""  # noqa: INP001 - Alembic loads it by its path

import sqlalchemy as sa
from alembic import op

revision = "0040"
down_revision = "0039"


def upgrade() -> None:
    for table, times in (("browser_sessions", ("created_at", "seen_at", "expires_at")), ("session_links", ("expires_at",))):
        op.create_table(
            table,
            sa.Column("digest", sa.LargeBinary(32), nullable=False),
            sa.Column("tenant_id", sa.String(36), nullable=False),
            sa.Column("key_id", sa.String(36), nullable=False),
            sa.Column("role", sa.String(10), nullable=False),
            *(sa.Column(time, sa.BigInteger(), nullable=False) for time in times),
            sa.PrimaryKeyConstraint("digest", name=f"pk_{table}"),
            sa.ForeignKeyConstraint(["tenant_id"], ["tenants.id"], name=f"fk_{table}_tenant_id_tenants"),
            sa.ForeignKeyConstraint(
                ["key_id"], ["api_keys.id"], name=f"fk_{table}_key_id_api_keys", ondelete="CASCADE"
            ),
        )
        op.create_index(f"ix_{table}_tenant_id", table, ["tenant_id"])
