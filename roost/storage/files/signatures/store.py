"""Table and SQL of wallet signatures."""

import sqlalchemy as sa

from roost.core.db import Connection, UtcTime, insert_or_ignore, metadata, read_one, read_record, record_values
from roost.storage.files.signatures.model import WalletSignature

signatures = sa.Table(
    "signatures",
    metadata,
    sa.Column("file_id", sa.String(36), sa.ForeignKey("files.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("cid", sa.String(128), nullable=False),
    sa.Column("signature", sa.String(132), nullable=False),
    sa.Column("address", sa.String(42), nullable=False),
    sa.Column("created_at", UtcTime, nullable=False),
)


def insert_signature(connection: Connection, signature: WalletSignature) -> bool:
    """Insert a signature unless the file has one; return whether it was inserted."""
    return insert_or_ignore(connection, signatures.insert().values(record_values(signatures, signature)))


def find_signature(connection: Connection, file_id: str) -> WalletSignature | None:
    query = signatures.select().where(signatures.c.file_id == file_id)
    return read_one(connection, query, lambda row: read_record(WalletSignature, row))


def delete_signature(connection: Connection, file_id: str) -> bool:
    return connection.execute(signatures.delete().where(signatures.c.file_id == file_id)).rowcount == 1
