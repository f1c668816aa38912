"""An index that answers which categories the hub has."""  # noqa: INP001 - Alembic loads it by its path

from alembic import op

revision = "0033"
down_revision = "0032"


def upgrade() -> None:
    op.create_index("ix_hub_skills_category", "hub_skills", ["category"])
