"""An index of files by CID across tenants, for announcements to the public network."""

from alembic import op

revision = "0017"
down_revision = "0016"


def upgrade() -> None:
    op.create_index("ix_files_cid", "files", ["cid"])
