"""Ids that were promised to files of which the content was there already."""

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"


def upgrade() -> None:
    op.create_table(
        "promises",
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("file_id", sa.String(36), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_promises"),
        sa.ForeignKeyConstraint(["file_id"], ["files.id"], name="fk_promises_file_id_files"),
    )
