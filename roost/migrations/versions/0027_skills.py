"""Skills of tenants, their versions, and the agents that have them."""  # noqa: INP001 - Alembic loads it by its path

import sqlalchemy as sa
from alembic import op

revision = "0027"
down_revision = "0026"


def upgrade() -> None:
    op.create_table(
        "skills",
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("tenant_id", sa.String(36), nullable=False),
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("slug", sa.String(128)),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_skills"),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.id"], name="fk_skills_tenant_id_tenants"),
        sa.UniqueConstraint("tenant_id", "slug", name="uq_skills_tenant_id_slug"),
    )
    op.create_index("ix_skills_tenant_id_name", "skills", ["tenant_id", "name"])
    op.create_table(
        "skill_versions",
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("skill_id", sa.String(36), nullable=False),
        sa.Column("tenant_id", sa.String(36), nullable=False),
        sa.Column("version", sa.String(64), nullable=False),
        sa.Column("cid", sa.String(128), nullable=False),
        sa.Column("description", sa.Text(), nullable=False),
        sa.Column("env_vars", sa.Text(), nullable=False),
        sa.Column("file_id", sa.String(64)),
        sa.Column("wants", sa.Text(), nullable=False),
        sa.Column("warnings", sa.Text(), nullable=False),
        sa.Column("verdict", sa.String(16), nullable=False),
        sa.Column("findings", sa.Text(), nullable=False),
        sa.Column("rules_version", sa.String(64), nullable=False),
        sa.Column("files", sa.Integer(), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_skill_versions"),
        sa.ForeignKeyConstraint(["skill_id"], ["skills.id"], name="fk_skill_versions_skill_id_skills"),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.id"], name="fk_skill_versions_tenant_id_tenants"),
        sa.UniqueConstraint("skill_id", "version", name="uq_skill_versions_skill_id_version"),
        sa.UniqueConstraint("tenant_id", "cid", name="uq_skill_versions_tenant_id_cid"),
    )
    op.create_index("ix_skill_versions_rules_version", "skill_versions", ["rules_version"])
    op.create_table(
        "agent_skills",
        sa.Column("agent_id", sa.String(36), nullable=False),
        sa.Column("skill_id", sa.String(36), nullable=False),
        sa.Column("version_id", sa.String(36), nullable=False),
        sa.Column("attached_at", sa.BigInteger(), nullable=False),
        sa.Column("delivered_id", sa.String(36)),
        sa.PrimaryKeyConstraint("agent_id", "skill_id", name="pk_agent_skills"),
        sa.ForeignKeyConstraint(
            ["agent_id"], ["agents.id"], name="fk_agent_skills_agent_id_agents", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["skill_id"], ["skills.id"], name="fk_agent_skills_skill_id_skills"),
        sa.ForeignKeyConstraint(
            ["version_id"], ["skill_versions.id"], name="fk_agent_skills_version_id_skill_versions"
        ),
    )
    op.create_index("ix_agent_skills_version_id", "agent_skills", ["version_id"])
