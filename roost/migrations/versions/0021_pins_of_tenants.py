"""Retrievals of pins as unordered operations of their tenants."""

from alembic import op

revision = "0021"
down_revision = "0020"

_MINE = "WHERE kind = 'pins.retrieve' AND finished_at IS NULL"


def upgrade() -> None:
    pin = "substr(operations.subject, 5)"  # the subject was pin/<id>
    op.execute(f"UPDATE operations SET tenant_id = (SELECT tenant_id FROM pins WHERE pins.id = {pin}) {_MINE}")  # noqa: S608 - constants
    op.execute(f"DELETE FROM operations {_MINE} AND tenant_id IS NULL")  # noqa: S608 - constants
    op.execute(f"UPDATE operations SET subject = 'pins/' || tenant_id {_MINE}")  # noqa: S608 - constants
