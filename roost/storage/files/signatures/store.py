"""Table and SQL of wallet signatures."""

from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from roost.core.db import UtcTime, insert_or_ignore, metadata
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
    row = {
        "file_id": signature.file_id,
        "cid": signature.cid,
        "signature": signature.signature,
        "address": signature.address,
        "created_at": signature.created_at,
    }
    return insert_or_ignore(connection, signatures.insert().values(row))


def find_signature(connection: Connection, file_id: str) -> WalletSignature | None:
    row: Any = connection.execute(signatures.select().where(signatures.c.file_id == file_id)).first()
    return None if row is None else WalletSignature(row.file_id, row.cid, row.signature, row.address, row.created_at)


def delete_signature(connection: Connection, file_id: str) -> bool:
    return connection.execute(signatures.delete().where(signatures.c.file_id == file_id)).rowcount == 1
