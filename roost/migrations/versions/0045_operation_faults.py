"""Work that keeps failing, and commits of snapshots as work of their agent."""  # noqa: INP001 - Alembic loads it by its path

import sqlalchemy as sa
from alembic import op

revision = "0045"
down_revision = "0044"


def upgrade() -> None:
    op.create_table(
        "operation_faults",
        sa.Column("subject", sa.String(100), primary_key=True),
        sa.Column("kind", sa.String(50), primary_key=True),
        sa.Column("failing_since", sa.BigInteger(), nullable=False),
        sa.Column("failed_at", sa.BigInteger(), nullable=False),
        sa.Column("failures", sa.Integer(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
    )
    operations = sa.table("operations", *map(sa.column, ("kind", "subject")))
    subject = sa.func.substr(operations.c.subject, len("git/") + 1).concat("/git")
    is_commit = sa.and_(operations.c.kind == "agent.commit", operations.c.subject.like("git/%"))
    op.execute(operations.update().where(is_commit).values(subject=subject))
