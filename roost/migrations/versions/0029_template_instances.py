"""The templates that agents were made from."""  # noqa: INP001 - Alembic loads it by its path

import sqlalchemy as sa
from alembic import op

revision = "0029"
down_revision = "0028"


def upgrade() -> None:
    op.create_table(
        "template_instances",
        sa.Column("agent_id", sa.String(36), nullable=False),
        sa.Column("template_id", sa.String(36), nullable=False),
        sa.Column("slug", sa.String(100), nullable=False),
        sa.Column("name", sa.String(100), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("commit_sha", sa.String(40), nullable=False),
        sa.Column("manifest", sa.Text(), nullable=False),
        sa.Column("is_waiting", sa.Boolean(), nullable=False),
        sa.Column("attempt", sa.Text()),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("agent_id", name="pk_template_instances"),
        sa.ForeignKeyConstraint(
            ["agent_id"], ["agents.id"], name="fk_template_instances_agent_id_agents", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["template_id"], ["templates.id"], name="fk_template_instances_template_id_templates"),
    )
    op.create_index("ix_template_instances_template_id", "template_instances", ["template_id"])
