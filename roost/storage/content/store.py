"""Tables and SQL of the content index."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from roost.core.db import PreparedQuery, UtcTime, insert_many, metadata, read_record, record_values, without_index
from roost.storage.content.errors import ContentNotFound
from roost.storage.content.model import (
    BlockLocation,
    BlockMatch,
    BlockRow,
    ContentNetwork,
    ContentScope,
    InternalNetwork,
    Pack,
    PackReference,
    StorageTotals,
    TreeRow,
)
from roost.storage.content.unixfs.cid import DIGEST, RAW, SHA2_256, Cid

packs = sa.Table(
    "packs",
    metadata,
    sa.Column("id", sa.String(32), primary_key=True),
    sa.Column("size", sa.BigInteger, nullable=False),
    sa.Column("damaged", sa.Boolean, nullable=False),
    sa.Column("created_at", UtcTime, nullable=False, index=True),
    sa.Column("checked_at", UtcTime),
    sa.Index("ix_packs_checked_at_id", "checked_at", "id"),
    sa.Index("ix_packs_damaged", "id", sqlite_where=sa.text("damaged = 1"), postgresql_where=sa.text("damaged")),
)

holds = sa.Table(
    "holds",
    metadata,
    sa.Column("pack_id", sa.String(32), sa.ForeignKey("packs.id"), primary_key=True),
    sa.Column("holder", sa.String(80), primary_key=True),
    sa.Column("tenant_id", sa.String(36), sa.ForeignKey("tenants.id"), nullable=False),
    sa.Column("network", sa.String(8), nullable=False),
    sa.Index("ix_holds_holder", "holder"),
)

stored = sa.Table(
    "stored",
    metadata,
    sa.Column("tenant_id", sa.String(36), sa.ForeignKey("tenants.id"), primary_key=True),
    sa.Column("size", sa.BigInteger, nullable=False),
)
"""Bytes of the packs that a tenant holds; a pack counts once for each holder."""

blocks = sa.Table(
    "blocks",
    metadata,
    sa.Column("digest", sa.LargeBinary, primary_key=True),
    sa.Column("pack_id", sa.String(32), sa.ForeignKey("packs.id", ondelete="CASCADE"), primary_key=True, index=True),
    sa.Column("codec", sa.Integer, nullable=False),
    sa.Column("hash", sa.Integer, nullable=False),
    sa.Column("place", sa.SmallInteger, nullable=False),
    sa.Column("offset", sa.BigInteger, nullable=False),
    sa.Column("length", sa.Integer, nullable=False),
    sa.Column("data", sa.LargeBinary),
)

trees = sa.Table(
    "trees",
    metadata,
    sa.Column("digest", sa.LargeBinary, primary_key=True),
    sa.Column("pack_id", sa.String(32), sa.ForeignKey("packs.id", ondelete="CASCADE"), primary_key=True, index=True),
    sa.Column("profile", sa.String(16), nullable=False),
    sa.Column("offset", sa.BigInteger, nullable=False),
    sa.Column("size", sa.BigInteger, nullable=False),
    sa.Column("leaves", sa.LargeBinary, nullable=False),
)

_BATCH_SIZE = 2000
_BLOCK_QUERY = (
    sa.select(blocks.c.pack_id, blocks.c.place, blocks.c.offset, blocks.c.length, blocks.c.data)
    .join(holds, holds.c.pack_id == blocks.c.pack_id)
    .join(packs, packs.c.id == blocks.c.pack_id)
    .where(blocks.c.digest == sa.bindparam("digest"), blocks.c.hash == sa.bindparam("hash"))
    .where(holds.c.network == sa.bindparam("network"))
    .order_by(packs.c.damaged, blocks.c.pack_id)
    .limit(1)
)
_FIND_PUBLIC = PreparedQuery(_BLOCK_QUERY)  # runs for every block that is read
_FIND_OF_TENANT = PreparedQuery(_BLOCK_QUERY.where(holds.c.tenant_id == sa.bindparam("tenant_id")))
_MANY = 500
"""Values of one IN list."""


def add_pack(connection: Connection, pack: Pack, rows: Iterable[BlockRow], files: Iterable[TreeRow]) -> None:
    """Insert a pack with its blocks and files; a repeated block or file is stored once.

    A file that is one raw block needs no row beside that of the block.
    """
    connection.execute(packs.insert().values(record_values(packs, pack)))
    unique_blocks = {row.cid.digest: _block_values(pack.id, row) for row in rows}
    unique_trees = {file.cid.digest: _tree_values(pack.id, file) for file in files if file.cid.codec != RAW}
    for table, values in ((blocks, list(unique_blocks.values())), (trees, list(unique_trees.values()))):
        for at in range(0, len(values), _BATCH_SIZE):
            insert_many(connection, table, values[at : at + _BATCH_SIZE])


def hold_pack(connection: Connection, reference: PackReference) -> None:
    """Add a holder to a pack, in the transaction that creates the holder."""
    connection.execute(holds.insert().values(record_values(holds, reference)))
    _add_stored_bytes(connection, reference.tenant_id, _pack_size(connection, reference.pack_id))


def hold_packs(
    connection: Connection,
    holder: str,
    tenant_id: str,
    network: ContentNetwork | InternalNetwork,
    pack_ids: Collection[str],
) -> None:
    """Replace the packs of a holder: add it to those that are new, and release those that are missing.

    The caller locks the tenant; a holder keeps its tenant and its network. Raises ContentNotFound if a pack is gone.
    """
    held = set(connection.execute(sa.select(holds.c.pack_id).where(holds.c.holder == holder)).scalars())
    gone, new = sorted(held.difference(pack_ids)), sorted(set(pack_ids) - held)
    sizes = _pack_sizes(connection, [*gone, *new])
    if len(sizes) < len(gone) + len(new):
        raise ContentNotFound
    for at in range(0, len(gone), _MANY):
        some = holds.c.pack_id.in_(gone[at : at + _MANY])
        connection.execute(holds.delete().where(holds.c.holder == holder, some))
    rows = [{"pack_id": one, "holder": holder, "tenant_id": tenant_id, "network": network.value} for one in new]
    insert_many(connection, holds, rows)
    if gone or new:
        _add_stored_bytes(connection, tenant_id, sum(sizes[one] for one in new) - sum(sizes[one] for one in gone))


def release_packs(connection: Connection, holder: str) -> None:
    """Release the packs of a holder; the sweep removes packs without a holder."""
    gone = holds.delete().where(holds.c.holder == holder).returning(holds.c.pack_id, holds.c.tenant_id)
    for row in connection.execute(gone).all():
        _add_stored_bytes(connection, row.tenant_id, -_pack_size(connection, row.pack_id))


def stored_bytes(connection: Connection, tenant_id: str) -> int:
    """Return the bytes of all packs that the tenant holds."""
    return connection.execute(sa.select(stored.c.size).where(stored.c.tenant_id == tenant_id)).scalar_one_or_none() or 0


def find_block(connection: Connection, scope: ContentScope, cid: Cid) -> BlockMatch | None:
    """Find a block in the packs of the scope, undamaged packs first, whatever the codec of the CID."""
    if cid.hash != SHA2_256:  # other hash codes may exceed the column
        return None
    values = {"digest": cid.digest, "hash": cid.hash, "network": scope.network.value, "tenant_id": scope.tenant_id}
    row = (_FIND_PUBLIC if scope.tenant_id is None else _FIND_OF_TENANT).first(connection, values)
    return _block_match(cid, row)


def find_blocks(connection: Connection, scope: ContentScope, cids: Sequence[Cid]) -> Sequence[BlockMatch | None]:
    """Find many blocks, as `find_block` finds one, in their order."""
    found: dict[bytes, Sequence[Any]] = {}
    digests = list({cid.digest for cid in cids if cid.hash == SHA2_256})
    for at in range(0, len(digests), _MANY):
        query = _blocks_query(scope, digests[at : at + _MANY])
        found.update((row[0], row[1:]) for row in connection.execute(query))
    return [_block_match(cid, found.get(cid.digest)) if cid.hash == SHA2_256 else None for cid in cids]


def find_tree(connection: Connection, pack_id: str, cid: Cid) -> TreeRow | None:
    """Find the file with that root in the pack, without its leaves."""
    query = sa.select(trees.c.profile, trees.c.offset, trees.c.size)
    query = query.where(trees.c.pack_id == pack_id, trees.c.digest == cid.digest)
    row = connection.execute(query).first()
    return None if row is None else TreeRow(cid, row.profile, row.offset, row.size, b"")


def leaf_digests(connection: Connection, pack_id: str, cid: Cid, first: int, count: int) -> bytes:
    """Return the concatenated digests of `count` chunks of a file."""
    part = sa.func.substr(trees.c.leaves, first * DIGEST + 1, count * DIGEST)
    query = sa.select(part).where(trees.c.pack_id == pack_id, trees.c.digest == cid.digest)
    return connection.execute(query).scalar_one()


def mark_damaged(connection: Connection, pack_id: str) -> bool:
    """Mark a pack as damaged; return whether it still exists."""
    return connection.execute(packs.update().where(packs.c.id == pack_id).values(damaged=True)).rowcount == 1


def mark_checked(connection: Connection, pack_ids: Sequence[str], at: datetime, *, damaged: bool) -> None:
    connection.execute(packs.update().where(packs.c.id.in_(pack_ids)).values(checked_at=at, damaged=damaged))


def list_unchecked(
    connection: Connection, before: datetime, after: tuple[datetime | None, str], limit: int
) -> Sequence[Pack]:
    """List packs with a holder whose last check was before `before`: first those without one, then the oldest checks.

    after: last check and id of the pack before the page. Includes damaged packs, whose bytes may have been restored.
    """
    checked_at, pack_id = after
    held = packs.select().where(_is_held()).order_by(packs.c.checked_at, packs.c.id)
    found: list[Any] = []
    due = held.where(packs.c.checked_at < before)
    if checked_at is None:  # two queries, because an OR of their conditions would sort all rows
        found += connection.execute(held.where(packs.c.checked_at.is_(None), packs.c.id > pack_id).limit(limit))
    else:
        key = sa.tuple_(packs.c.checked_at, packs.c.id)
        due = due.where(key > sa.tuple_(sa.literal(checked_at, UtcTime), sa.literal(pack_id)))
    found += connection.execute(due.limit(limit - len(found)))
    return [read_record(Pack, row) for row in found]


def count_unchecked(connection: Connection, before: datetime) -> int:
    """Count the packs that were last checked before `before`, also those without a holder."""
    due = (packs.c.checked_at.is_(None), packs.c.checked_at < before)
    return sum(connection.execute(sa.select(sa.func.count()).select_from(packs).where(one)).scalar_one() for one in due)


def count_damaged(connection: Connection) -> int:
    """Count the damaged packs that have a holder."""
    query = sa.select(sa.func.count()).select_from(packs).where(packs.c.damaged, _is_held())
    return connection.execute(query).scalar_one()


def list_holders(connection: Connection, pack_id: str, limit: int) -> Sequence[str]:
    """List up to `limit` holders of the pack."""
    query = sa.select(holds.c.holder).where(holds.c.pack_id == pack_id).order_by(holds.c.holder).limit(limit)
    return list(connection.execute(query).scalars())


def holders_of_damaged(connection: Connection, after: str, limit: int) -> Sequence[str]:
    """List holders of damaged packs after a name, in order."""
    holder = without_index(holds.c.holder)  # else SQLite reads all holders in order, however few packs are damaged
    query = sa.select(holds.c.holder).join(packs, packs.c.id == holds.c.pack_id)
    query = query.where(packs.c.damaged, holder > after).order_by(holder).limit(limit)
    return list(connection.execute(query).scalars())


def holds_damaged(connection: Connection, holder: str) -> bool:
    """Return whether a pack of the holder is known to be damaged."""
    query = sa.select(packs.c.id).join(holds, packs.c.id == holds.c.pack_id)
    return connection.execute(query.where(packs.c.damaged, holds.c.holder == holder).limit(1)).first() is not None


def list_blocks(connection: Connection, pack_id: str, after: bytes, limit: int) -> Sequence[BlockRow]:
    """List blocks of a pack after a digest, in order."""
    query = blocks.select().where(blocks.c.pack_id == pack_id, blocks.c.digest > after)
    found = connection.execute(query.order_by(blocks.c.digest).limit(limit))
    return [
        BlockRow(Cid(1, row.codec, row.hash, row.digest), BlockLocation(row.place), row.offset, row.length, row.data)
        for row in found
    ]


def list_unheld(connection: Connection, before: datetime, after: str, limit: int) -> Sequence[str]:
    """List packs after an id, in order, without a holder and created before `before`."""
    query = sa.select(packs.c.id).where(packs.c.id > after, packs.c.created_at < before, ~_is_held())
    return list(connection.execute(query.order_by(packs.c.id).limit(limit)).scalars())


def known_packs(connection: Connection, keys: Sequence[str]) -> set[str]:
    """Return the keys that are packs."""
    return set(connection.execute(sa.select(packs.c.id).where(packs.c.id.in_(keys))).scalars())


def storage_totals(connection: Connection) -> StorageTotals:
    """Total the bytes of all packs."""
    size = sa.func.coalesce(sa.func.sum(packs.c.size), 0)
    query = sa.select(size, sa.func.coalesce(sa.func.sum(packs.c.size).filter(~_is_held()), 0))
    every, unheld = connection.execute(query).one()
    return StorageTotals(int(every), int(unheld))


def remove_unheld(connection: Connection, pack_id: str) -> bool:
    """Remove a pack from the index unless it has a holder; return whether it was removed."""
    return connection.execute(packs.delete().where(packs.c.id == pack_id, ~_is_held())).rowcount == 1


def _add_stored_bytes(connection: Connection, tenant_id: str, more: int) -> None:
    """Add to the total of a tenant; the caller locks the tenant, so that the row is inserted once."""
    counted = stored.update().where(stored.c.tenant_id == tenant_id).values(size=stored.c.size + more)
    if connection.execute(counted).rowcount == 0:
        connection.execute(stored.insert().values(tenant_id=tenant_id, size=more))


def _pack_size(connection: Connection, pack_id: str) -> int:
    return connection.execute(sa.select(packs.c.size).where(packs.c.id == pack_id)).scalar_one()


def _pack_sizes(connection: Connection, pack_ids: Sequence[str]) -> Mapping[str, int]:
    """Return the sizes of those packs that exist."""
    found: dict[str, int] = {}
    for at in range(0, len(pack_ids), _MANY):
        query = sa.select(packs.c.id, packs.c.size).where(packs.c.id.in_(pack_ids[at : at + _MANY]))
        found.update((row.id, row.size) for row in connection.execute(query))
    return found


def _blocks_query(scope: ContentScope, digests: Sequence[bytes]) -> sa.Select[*tuple[Any, ...]]:
    """Select one copy of each block of the scope, undamaged packs first; a pack with many holders is one copy."""
    held = sa.exists().where(holds.c.pack_id == blocks.c.pack_id, holds.c.network == scope.network.value)
    if scope.tenant_id is not None:
        held = held.where(holds.c.tenant_id == scope.tenant_id)
    order = sa.case((packs.c.damaged, "1"), else_="0") + blocks.c.pack_id
    best = sa.select(blocks.c.digest, sa.func.min(order).label("best")).join(packs, packs.c.id == blocks.c.pack_id)
    best = best.where(blocks.c.digest.in_(digests), held).group_by(blocks.c.digest).subquery()
    is_best = sa.and_(blocks.c.digest == best.c.digest, blocks.c.pack_id == sa.func.substr(best.c.best, 2))
    columns = (blocks.c.digest, blocks.c.pack_id, blocks.c.place, blocks.c.offset, blocks.c.length, blocks.c.data)
    return sa.select(*columns).join(best, is_best)


def _block_match(cid: Cid, row: Sequence[Any] | None) -> BlockMatch | None:
    if row is None:
        return None
    pack_id, place, offset, length, data = row
    return BlockMatch(pack_id, BlockRow(cid, BlockLocation(place), offset, length, data))


def _is_held() -> sa.ColumnElement[bool]:
    return sa.exists().where(holds.c.pack_id == packs.c.id)


def _block_values(pack_id: str, row: BlockRow) -> dict[str, Any]:
    return {
        "digest": row.cid.digest,
        "pack_id": pack_id,
        "codec": row.cid.codec,
        "hash": row.cid.hash,
        "place": int(row.location),
        "offset": row.offset,
        "length": row.length,
        "data": row.data,
    }


def _tree_values(pack_id: str, file: TreeRow) -> dict[str, Any]:
    return {
        "digest": file.cid.digest,
        "pack_id": pack_id,
        "profile": file.profile,
        "offset": file.offset,
        "size": file.size,
        "leaves": file.leaves,
    }
