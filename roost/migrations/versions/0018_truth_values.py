"""Truth values of pairs as filters compare them, which is as JSON writes them; they were kept as Python writes them."""

import json

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"

_PAGE = 1000

_files = sa.table("files", sa.column("id"), sa.column("keyvalues"))
_pairs = sa.table("file_keyvalues", sa.column("file_id"), sa.column("key"), sa.column("value"))
_key = (_pairs.c.file_id, _pairs.c.key)
_lower = (
    _pairs.update()
    .where(_pairs.c.file_id == sa.bindparam("of_file"), _pairs.c.key == sa.bindparam("of_key"))
    .values(value=sa.func.lower(_pairs.c.value))
)


def upgrade() -> None:
    connection = op.get_bind()
    suspects = (
        sa.select(*_key, _files.c.keyvalues)
        .join(_files, _files.c.id == _pairs.c.file_id)
        .where(_pairs.c.value.in_(("True", "False")))
        .order_by(*_key)
        .limit(_PAGE)
    )
    rows = connection.execute(suspects).all()
    while rows:
        truths = [  # a text "True" stays what it is
            {"of_file": row.file_id, "of_key": row.key}
            for row in rows
            if isinstance(json.loads(row.keyvalues).get(row.key), bool)
        ]
        if truths:
            connection.execute(_lower, truths)
        last = sa.tuple_(sa.literal(rows[-1].file_id), sa.literal(rows[-1].key))
        rows = connection.execute(suspects.where(sa.tuple_(*_key) > last)).all()
