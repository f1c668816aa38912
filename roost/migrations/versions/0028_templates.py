"""Agent templates and their versions."""  # noqa: INP001 - Alembic loads it by its path

import sqlalchemy as sa
from alembic import op

revision = "0028"
down_revision = "0027"


def upgrade() -> None:
    op.create_table(
        "templates",
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("tenant_id", sa.String(36), nullable=False),
        sa.Column("slug", sa.String(100), nullable=False),
        sa.Column("active_slug", sa.String(100)),
        sa.Column("name", sa.String(100), nullable=False),
        sa.Column("name_override", sa.String(100)),
        sa.Column("category", sa.String(50), nullable=False),
        sa.Column("author_name", sa.String(100), nullable=False),
        sa.Column("author_url", sa.Text),
        sa.Column("author_logo_url", sa.Text),
        sa.Column("engine", sa.String(32)),
        sa.Column("vibe", sa.String(200)),
        sa.Column("emoji", sa.String(32)),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("featured", sa.Boolean, nullable=False),
        *(sa.Column(name, sa.Text, nullable=False) for name in ("description", "tags", "secrets", "skills", "git_url")),
        sa.Column("git_ref", sa.String(255)),
        sa.Column("git_path", sa.Text),
        sa.Column("commit_sha", sa.String(40), nullable=False),
        sa.Column("snapshot_cid", sa.String(100), nullable=False),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("updated_at", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_templates"),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.id"], name="fk_templates_tenant_id_tenants"),
        sa.UniqueConstraint("active_slug", name="uq_templates_active_slug"),
    )
    op.create_index("ix_templates_tenant_id", "templates", ["tenant_id"])
    op.create_index("ix_templates_status_created_at_id", "templates", ["status", "created_at", "id"])
    op.create_table(
        "template_versions",
        sa.Column("template_id", sa.String(36), nullable=False),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("commit_sha", sa.String(40), nullable=False),
        sa.Column("manifest", sa.Text, nullable=False),
        sa.Column("readme", sa.Text, nullable=False),
        sa.Column("snapshot_cid", sa.String(100), nullable=False),
        sa.Column("files", sa.Integer, nullable=False),
        sa.Column("size", sa.BigInteger, nullable=False),
        sa.Column("pack_id", sa.String(32), nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("template_id", "version", name="pk_template_versions"),
        sa.ForeignKeyConstraint(
            ["template_id"], ["templates.id"], name="fk_template_versions_template_id_templates", ondelete="CASCADE"
        ),
    )
