"""Indexes whose use does not grow with all files of a tenant, or with all operations that wait."""  # noqa: INP001 - Alembic loads it by its path

import sqlalchemy as sa
from alembic import op

revision = "0049"
down_revision = "0048"


def upgrade() -> None:
    op.create_index("ix_files_group_list", "files", ["group_id", "tenant_id", "network", "created_at", "id"])
    op.drop_index("ix_files_group_id", "files")  # a prefix of it
    ordered = sa.text("finished_at IS NULL AND tenant_id IS NULL")
    op.drop_index("ix_operations_ordered", "operations")
    op.create_index(
        "ix_operations_ordered",
        "operations",
        ["kind", "actor", "number"],
        sqlite_where=ordered,
        postgresql_where=ordered,
    )
