"""Content by CID, the files and groups of tenants."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    _content()
    _groups()
    _files()


def _content() -> None:
    op.create_table(
        "packs",
        sa.Column("id", sa.String(32), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("damaged", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("checked_at", sa.BigInteger()),
        sa.PrimaryKeyConstraint("id", name="pk_packs"),
    )
    op.create_index("ix_packs_created_at", "packs", ["created_at"])
    op.create_index("ix_packs_checked_at", "packs", ["checked_at"])
    op.create_table(
        "holds",
        sa.Column("pack_id", sa.String(32), nullable=False),
        sa.Column("holder", sa.String(80), nullable=False),
        sa.Column("tenant_id", sa.String(36), nullable=False),
        sa.Column("network", sa.String(8), nullable=False),
        sa.PrimaryKeyConstraint("pack_id", "holder", name="pk_holds"),
        sa.ForeignKeyConstraint(["pack_id"], ["packs.id"], name="fk_holds_pack_id_packs"),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.id"], name="fk_holds_tenant_id_tenants"),
    )
    op.create_index("ix_holds_holder", "holds", ["holder"])
    op.create_table(
        "blocks",
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("pack_id", sa.String(32), nullable=False),
        sa.Column("codec", sa.Integer(), nullable=False),
        sa.Column("hash", sa.Integer(), nullable=False),
        sa.Column("place", sa.SmallInteger(), nullable=False),
        sa.Column("offset", sa.BigInteger(), nullable=False),
        sa.Column("length", sa.Integer(), nullable=False),
        sa.Column("data", sa.LargeBinary()),
        sa.PrimaryKeyConstraint("digest", "pack_id", name="pk_blocks"),
        sa.ForeignKeyConstraint(["pack_id"], ["packs.id"], name="fk_blocks_pack_id_packs", ondelete="CASCADE"),
    )
    op.create_index("ix_blocks_pack_id", "blocks", ["pack_id"])
    op.create_table(
        "trees",
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("pack_id", sa.String(32), nullable=False),
        sa.Column("profile", sa.String(16), nullable=False),
        sa.Column("offset", sa.BigInteger(), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("leaves", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("digest", "pack_id", name="pk_trees"),
        sa.ForeignKeyConstraint(["pack_id"], ["packs.id"], name="fk_trees_pack_id_packs", ondelete="CASCADE"),
    )
    op.create_index("ix_trees_pack_id", "trees", ["pack_id"])


def _groups() -> None:
    op.create_table(
        "groups",
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("tenant_id", sa.String(36), nullable=False),
        sa.Column("network", sa.String(8), nullable=False),
        sa.Column("name", sa.String(100), nullable=False),
        sa.Column("is_public", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_groups"),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.id"], name="fk_groups_tenant_id_tenants"),
    )
    order = ["tenant_id", "network", "created_at", "id"]
    op.create_index("ix_groups_tenant_id_network_created_at_id", "groups", order)


def _files() -> None:
    op.create_table(
        "files",
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("tenant_id", sa.String(36), nullable=False),
        sa.Column("network", sa.String(8), nullable=False),
        sa.Column("cid", sa.String(128), nullable=False),
        sa.Column("name", sa.String(255)),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("number_of_files", sa.Integer(), nullable=False),
        sa.Column("mime_type", sa.String(255), nullable=False),
        sa.Column("keyvalues", sa.Text(), nullable=False),
        sa.Column("group_id", sa.String(36)),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger()),
        sa.Column("deleted_at", sa.BigInteger()),
        sa.PrimaryKeyConstraint("id", name="pk_files"),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.id"], name="fk_files_tenant_id_tenants"),
        sa.ForeignKeyConstraint(["group_id"], ["groups.id"], name="fk_files_group_id_groups", ondelete="SET NULL"),
    )
    op.create_index("ix_files_group_id", "files", ["group_id"])
    op.create_index("ix_files_expires_at", "files", ["expires_at"])
    op.create_index("ix_files_tenant_id_network_created_at_id", "files", ["tenant_id", "network", "created_at", "id"])
    present = sa.text("deleted_at IS NULL")
    op.create_index(
        "uq_files_tenant_id_network_cid",
        "files",
        ["tenant_id", "network", "cid"],
        unique=True,
        sqlite_where=present,
        postgresql_where=present,
    )
    op.create_table(
        "file_keyvalues",
        sa.Column("file_id", sa.String(36), nullable=False),
        sa.Column("key", sa.String(255), nullable=False),
        sa.Column("value", sa.String(1024), nullable=False),
        sa.PrimaryKeyConstraint("file_id", "key", name="pk_file_keyvalues"),
        sa.ForeignKeyConstraint(["file_id"], ["files.id"], name="fk_file_keyvalues_file_id_files", ondelete="CASCADE"),
    )
    op.create_index("ix_file_keyvalues_key_value", "file_keyvalues", ["key", "value"])
