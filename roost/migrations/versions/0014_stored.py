"""How many bytes each tenant keeps, for the limits of plans."""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"


def upgrade() -> None:
    op.create_table(
        "stored",
        sa.Column("tenant_id", sa.String(36), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", name="pk_stored"),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.id"], name="fk_stored_tenant_id_tenants"),
    )
    op.execute(
        "INSERT INTO stored (tenant_id, size) SELECT holds.tenant_id, SUM(packs.size)"
        " FROM holds JOIN packs ON packs.id = holds.pack_id GROUP BY holds.tenant_id"
    )
