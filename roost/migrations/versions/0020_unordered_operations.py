"""Unordered operations of tenants, and the unfinished webhook deliveries as such."""

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"


def upgrade() -> None:
    op.add_column("operations", sa.Column("tenant_id", sa.String(36)))
    op.drop_index("ix_operations_finished_at", "operations")
    _index("finished_at", ["finished_at"], "finished_at IS NOT NULL")
    _index("ordered", ["tenant_id", "number"], "finished_at IS NULL AND tenant_id IS NULL")
    _index("unordered", ["state", "kind", "subject", "run_after"], "finished_at IS NULL AND tenant_id IS NOT NULL")
    op.execute(
        "INSERT INTO operations"
        " (id, kind, subject, tenant_id, state, attempts, failures, run_after, created_at)"
        " SELECT webhook_deliveries.id, 'webhooks.deliver', 'webhook/' || webhooks.id, webhooks.tenant_id,"
        " CASE WHEN webhooks.enabled THEN 'pending' ELSE 'paused' END, 0, 0, webhook_deliveries.next_at,"
        " webhook_deliveries.created_at"
        " FROM webhook_deliveries JOIN webhooks ON webhooks.id = webhook_deliveries.webhook_id"
        " WHERE webhook_deliveries.finished_at IS NULL AND webhooks.deleted_at IS NULL"
        " ORDER BY webhook_deliveries.created_at, webhook_deliveries.id"
    )


def _index(name: str, columns: list[str], where: str) -> None:
    condition = sa.text(where)
    op.create_index(
        f"ix_operations_{name}", "operations", columns, sqlite_where=condition, postgresql_where=condition
    )
