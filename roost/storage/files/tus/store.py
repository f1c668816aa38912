"""Tables and SQL of resumable uploads."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from roost.core.db import Connection, JsonText, UtcTime, metadata, read_one, read_record, record_values
from roost.storage.content.unixfs.profile import PROFILES
from roost.storage.files.tus.model import TusUpload

_HEADER = ""  # no key of `Upload-Metadata` is empty
transfers = sa.Table(
    "transfers",
    metadata,
    sa.Column("id", sa.String(32), primary_key=True),
    sa.Column("digest", sa.LargeBinary(32), nullable=False, unique=True),
    sa.Column("file_id", sa.String(36), nullable=False),
    sa.Column("tenant_id", sa.String(36), sa.ForeignKey("tenants.id"), nullable=False, index=True),
    sa.Column("length", sa.BigInteger),
    sa.Column("limit", sa.BigInteger, nullable=False),
    sa.Column("fields", JsonText, nullable=False),
    sa.Column("mime_types", JsonText, nullable=False),
    sa.Column("profile", sa.String(16), nullable=False),
    sa.Column("offset", sa.BigInteger, nullable=False),
    sa.Column("hashed", sa.BigInteger, nullable=False),
    sa.Column("cid", sa.String(128)),
    sa.Column("created_at", UtcTime, nullable=False),
    sa.Column("expires_at", UtcTime, nullable=False, index=True),
    sa.Column("host_id", sa.String(36)),
)

transfer_leaves = sa.Table(
    "transfer_leaves",
    metadata,
    sa.Column("transfer_id", sa.String(32), sa.ForeignKey("transfers.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("offset", sa.BigInteger, primary_key=True),
    sa.Column("digests", sa.LargeBinary, nullable=False),
)


def insert_transfer(connection: Connection, transfer: TusUpload, digest: bytes) -> None:
    values = record_values(
        transfers,
        transfer,
        digest=digest,
        fields={**transfer.fields, _HEADER: transfer.metadata},
        mime_types=list(transfer.mime_types),
        profile=transfer.profile.name,
    )
    connection.execute(transfers.insert().values(values))


def find_by_token(connection: Connection, file_id: str, digest: bytes, at: datetime) -> TusUpload | None:
    """Find the upload with that token digest, unless it has expired."""
    query = transfers.select().where(transfers.c.digest == digest, transfers.c.file_id == file_id)
    return read_one(connection, query.where(transfers.c.expires_at > at), _transfer)


def find_host(connection: Connection, digest: bytes) -> str | None:
    """Return the host that has the bytes of an unfinished upload; None if there is none, or it is not known."""
    query = sa.select(transfers.c.host_id).where(transfers.c.digest == digest, transfers.c.cid.is_(None))
    return connection.execute(query).scalar()


def find_transfer(connection: Connection, transfer_id: str) -> TusUpload | None:
    return read_one(connection, transfers.select().where(transfers.c.id == transfer_id), _transfer)


def count_unfinished(connection: Connection, tenant_id: str, at: datetime) -> tuple[int, int]:
    """Return the number of unfinished uploads of the tenant and their expected bytes."""
    mine = (transfers.c.tenant_id == tenant_id, transfers.c.cid.is_(None), transfers.c.expires_at > at)
    expected = sa.func.coalesce(sa.func.sum(sa.func.coalesce(transfers.c.length, transfers.c.offset)), 0)
    count, size = connection.execute(sa.select(sa.func.count(), expected).where(*mine)).one()
    return count, int(size)


def set_length(connection: Connection, transfer_id: str, length: int) -> None:
    """Set a deferred length unless it is set already."""
    query = transfers.update().where(transfers.c.id == transfer_id, transfers.c.length.is_(None))
    connection.execute(query.values(length=length))


def save_progress(connection: Connection, before: TusUpload, after: TusUpload, digests: bytes) -> bool:
    """Save progress and new leaf digests; return False if the offset has changed meanwhile."""
    query = transfers.update().where(transfers.c.id == before.id, transfers.c.offset == before.offset)
    if connection.execute(query.values(offset=after.offset, hashed=after.hashed)).rowcount == 0:
        return False
    if digests:
        row = {"transfer_id": before.id, "offset": before.hashed, "digests": digests}
        connection.execute(transfer_leaves.insert().values(row))
    return True


def leaf_digests(connection: Connection, transfer_id: str) -> bytes:
    """Return the concatenated digests of all stored leaves."""
    query = sa.select(transfer_leaves.c.digests).where(transfer_leaves.c.transfer_id == transfer_id)
    return b"".join(connection.execute(query.order_by(transfer_leaves.c.offset)).scalars())


def mark_finished(connection: Connection, transfer_id: str, cid: str) -> None:
    """Set the CID of the published file and delete the leaf digests."""
    connection.execute(transfers.update().where(transfers.c.id == transfer_id).values(cid=cid))
    connection.execute(transfer_leaves.delete().where(transfer_leaves.c.transfer_id == transfer_id))


def delete_transfer(connection: Connection, transfer_id: str) -> None:
    connection.execute(transfers.delete().where(transfers.c.id == transfer_id))


def delete_unfinished(connection: Connection, file_id: str) -> Sequence[str]:
    """Delete unfinished uploads of a file id; return their ids."""
    query = transfers.delete().where(transfers.c.file_id == file_id, transfers.c.cid.is_(None))
    return list(connection.execute(query.returning(transfers.c.id)).scalars())


def list_expired(connection: Connection, at: datetime, limit: int) -> Sequence[str]:
    query = sa.select(transfers.c.id).where(transfers.c.expires_at <= at).order_by(transfers.c.expires_at)
    return list(connection.execute(query.limit(limit)).scalars())


def _transfer(row: Any) -> TusUpload:
    fields = dict(row.fields)
    return read_record(
        TusUpload,
        row,
        metadata=fields.pop(_HEADER, ""),
        fields=fields,
        mime_types=tuple(row.mime_types),
        profile=PROFILES[row.profile],
    )
