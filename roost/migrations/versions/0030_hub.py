"""The hub: published skills, their versions, owners and installations."""  # noqa: INP001 - Alembic loads it by its path

import sqlalchemy as sa
from alembic import op

revision = "0030"
down_revision = "0029"


def upgrade() -> None:
    _create_owners()
    _create_skills()
    _create_versions()
    op.create_table(
        "hub_installs",
        sa.Column("hub_skill_id", sa.String(36), nullable=False),
        sa.Column("tenant_id", sa.String(36), nullable=False),
        sa.Column("installed_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("hub_skill_id", "tenant_id", name="pk_hub_installs"),
        sa.ForeignKeyConstraint(
            ["hub_skill_id"], ["hub_skills.id"], name="fk_hub_installs_hub_skill_id_hub_skills", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.id"], name="fk_hub_installs_tenant_id_tenants"),
    )
    op.create_table(
        "hub_uploads",
        sa.Column("id", sa.String(64), nullable=False),
        sa.Column("tenant_id", sa.String(36), nullable=False),
        sa.Column("size", sa.Integer(), nullable=False),
        sa.Column("content", sa.LargeBinary()),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_hub_uploads"),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.id"], name="fk_hub_uploads_tenant_id_tenants"),
    )
    op.create_index("ix_hub_uploads_tenant_id", "hub_uploads", ["tenant_id"])
    op.create_index("ix_hub_uploads_created_at", "hub_uploads", ["created_at"])


def _create_owners() -> None:
    op.create_table(
        "hub_owners",
        sa.Column("handle", sa.String(39), nullable=False),
        sa.Column("tenant_id", sa.String(36), nullable=False),
        sa.PrimaryKeyConstraint("handle", name="pk_hub_owners"),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.id"], name="fk_hub_owners_tenant_id_tenants"),
        sa.UniqueConstraint("tenant_id", name="uq_hub_owners_tenant_id"),
    )


def _create_skills() -> None:
    op.create_table(
        "hub_skills",
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("tenant_id", sa.String(36), nullable=False),
        sa.Column("owner", sa.String(39), nullable=False),
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("description", sa.Text(), nullable=False),
        sa.Column("author_name", sa.String(100), nullable=False),
        sa.Column("author_url", sa.String(500)),
        sa.Column("author_logo_url", sa.String(500)),
        sa.Column("category", sa.String(40), nullable=False),
        sa.Column("tags", sa.Text(), nullable=False),
        sa.Column("featured", sa.Boolean(), nullable=False),
        sa.Column("install_count", sa.Integer(), nullable=False),
        sa.Column("latest_id", sa.String(36), nullable=False),
        sa.Column("search", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_hub_skills"),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.id"], name="fk_hub_skills_tenant_id_tenants"),
        sa.UniqueConstraint("owner", "name", name="uq_hub_skills_owner_name"),
    )
    op.create_index("ix_hub_skills_tenant_id", "hub_skills", ["tenant_id"])
    op.create_index("ix_hub_skills_install_count", "hub_skills", ["install_count", "id"])
    op.create_index("ix_hub_skills_created_at", "hub_skills", ["created_at", "id"])
    op.create_index("ix_hub_skills_name", "hub_skills", ["name", "id"])


def _create_versions() -> None:
    op.create_table(
        "hub_versions",
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("hub_skill_id", sa.String(36), nullable=False),
        sa.Column("tenant_id", sa.String(36), nullable=False),
        sa.Column("version", sa.String(64), nullable=False),
        sa.Column("cid", sa.String(128), nullable=False),
        sa.Column("description", sa.Text(), nullable=False),
        sa.Column("license", sa.Text()),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("changelog", sa.Text(), nullable=False),
        sa.Column("wants", sa.Text(), nullable=False),
        sa.Column("verdict", sa.Text(), nullable=False),
        sa.Column("rules_version", sa.String(64), nullable=False),
        sa.Column("fingerprint", sa.String(64), nullable=False),
        sa.Column("files", sa.Integer(), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_hub_versions"),
        sa.ForeignKeyConstraint(
            ["hub_skill_id"], ["hub_skills.id"], name="fk_hub_versions_hub_skill_id_hub_skills", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.id"], name="fk_hub_versions_tenant_id_tenants"),
        sa.UniqueConstraint("hub_skill_id", "version", name="uq_hub_versions_hub_skill_id_version"),
        sa.UniqueConstraint("hub_skill_id", "cid", name="uq_hub_versions_hub_skill_id_cid"),
    )
    op.create_index("ix_hub_versions_tenant_id", "hub_versions", ["tenant_id"])
    op.create_index("ix_hub_versions_rules_version", "hub_versions", ["rules_version"])
