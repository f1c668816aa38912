"""Tables and SQL of files."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from roost.core.db import (
    IdQuery,
    JsonText,
    UtcTime,
    metadata,
    page_by_creation,
    read_one,
    read_record,
    record_values,
    without_index,
)
from roost.core.page_cursor import PageCursor
from roost.storage.content.model import ContentNetwork
from roost.storage.files.model import (
    HOLDER_PREFIX,
    UNGROUPED,
    File,
    FileFilter,
    FileMetadata,
    KeyvalueCondition,
    PinFilter,
    format_value,
)

files = sa.Table(
    "files",
    metadata,
    sa.Column("id", sa.String(36), primary_key=True),
    sa.Column("tenant_id", sa.String(36), sa.ForeignKey("tenants.id"), nullable=False),
    sa.Column("network", sa.String(8), nullable=False),
    sa.Column("cid", sa.String(128), nullable=False),
    sa.Column("name", sa.String(255)),
    sa.Column("size", sa.BigInteger, nullable=False),
    sa.Column("number_of_files", sa.Integer, nullable=False),
    sa.Column("mime_type", sa.String(255), nullable=False),
    sa.Column("keyvalues", JsonText, nullable=False),
    sa.Column("group_id", sa.String(36), sa.ForeignKey("groups.id", ondelete="SET NULL")),
    sa.Column("created_at", UtcTime, nullable=False),
    sa.Column("updated_at", UtcTime, nullable=False),
    sa.Column("expires_at", UtcTime, index=True),
    sa.Column("deleted_at", UtcTime),
    sa.Index("ix_files_cid", "cid"),
    sa.Index("ix_files_tenant_id_network_created_at_id", "tenant_id", "network", "created_at", "id"),
    sa.Index("ix_files_group_list", "group_id", "tenant_id", "network", "created_at", "id"),
    sa.Index(
        "uq_files_tenant_id_network_cid",
        "tenant_id",
        "network",
        "cid",
        unique=True,
        sqlite_where=sa.text("deleted_at IS NULL"),
        postgresql_where=sa.text("deleted_at IS NULL"),
    ),
)

file_keyvalues = sa.Table(
    "file_keyvalues",
    metadata,
    sa.Column("file_id", sa.String(36), sa.ForeignKey("files.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("key", sa.String(255), primary_key=True),
    sa.Column("value", sa.String(1024), nullable=False),
    sa.Index("ix_file_keyvalues_key_value", "key", "value"),
)

id_aliases = sa.Table(
    "promises",
    metadata,
    sa.Column("id", sa.String(36), primary_key=True),
    sa.Column("file_id", sa.String(36), sa.ForeignKey("files.id"), nullable=False),
)
"""Reserved ids of uploads whose content already had a file."""

_FEW_FILES = 1_000
"""Files that are found by a keyvalue and then sorted; more are looked for in the order of the list."""


def insert_file(connection: Connection, file: File) -> None:
    connection.execute(files.insert().values(record_values(files, file, **_metadata_values(file.metadata))))
    _set_keyvalues(connection, file.id, file.metadata)


def find_file(connection: Connection, tenant_id: str, network: ContentNetwork, file_id: str) -> File | None:
    """Find the file with that id or alias."""
    promised = sa.select(id_aliases.c.file_id).where(id_aliases.c.id == file_id).scalar_subquery()
    which = sa.or_(files.c.id == file_id, files.c.id == promised)
    return read_one(connection, _select_files(tenant_id, network).where(which), _file)


def find_by_cid(connection: Connection, tenant_id: str, network: ContentNetwork, cid: str) -> File | None:
    return read_one(connection, _select_files(tenant_id, network).where(files.c.cid == cid), _file)


def file_names(
    connection: Connection, tenant_id: str, network: ContentNetwork, cids: Sequence[str]
) -> Mapping[str, str]:
    """Return the names of the tenant's files of these CIDs, without unnamed files."""
    query = sa.select(files.c.cid, files.c.name).where(*_tenant_conditions(tenant_id, network), files.c.cid.in_(cids))
    return {row.cid: row.name for row in connection.execute(query) if row.name is not None}


def files_of_holders(connection: Connection, holders: Sequence[str]) -> Sequence[File]:
    """List the files of all tenants among holders of content."""
    ids = [holder.removeprefix(HOLDER_PREFIX) for holder in holders if holder.startswith(HOLDER_PREFIX)]
    return [_file(row) for row in connection.execute(sa.select(files).where(files.c.id.in_(ids)))]


def files_by_id(connection: Connection, tenant_id: str, file_ids: Sequence[str]) -> Mapping[str, File]:
    """Return the tenant's files of these ids, on both networks, by id."""
    mine = (files.c.tenant_id == tenant_id, files.c.id.in_(file_ids), files.c.deleted_at.is_(None))
    return {row.id: _file(row) for row in connection.execute(sa.select(files).where(*mine))}


def select_group_files(tenant_id: str, group_id: str) -> IdQuery:
    """Return a query of the ids of the files of a group, for the SQL of another slice."""
    group = (files.c.tenant_id == tenant_id, files.c.group_id == group_id, files.c.deleted_at.is_(None))
    return sa.select(files.c.id).where(*group)


def resolve_file_id(connection: Connection, file_id: str) -> str | None:
    """Return the id of the file with that id or alias, including deleted files."""
    own, promised = sa.select(files.c.id).where(files.c.id == file_id), sa.select(id_aliases.c.file_id)
    return connection.execute(sa.union_all(own, promised.where(id_aliases.c.id == file_id))).scalar()


def insert_alias(connection: Connection, file_id: str, by: str) -> None:
    """Make `file_id` an alias of the file `by`."""
    connection.execute(id_aliases.insert().values(id=file_id, file_id=by))


def list_files(
    connection: Connection,
    tenant_id: str,
    network: ContentNetwork,
    filters: FileFilter,
    after: PageCursor | None,
    limit: int,
) -> Sequence[File]:
    """List files that match the filter, by creation, after a cursor."""
    rare = {key for key, value in filters.keyvalues.items() if _has_few_files(connection, key, value)}
    # SQLite would read all files of the tenant in the order of the list, however few match.
    tenant = without_index(files.c.tenant_id) if rare or filters.cid is not None else files.c.tenant_id
    query = sa.select(files).where(tenant == tenant_id, *_listed(network), *_conditions(filters, rare))
    ordered = page_by_creation(query, files.c.created_at, files.c.id, after, ascending=filters.ascending)
    return [_file(row) for row in connection.execute(ordered.limit(limit))]


def count_files(
    connection: Connection, tenant_id: str, network: ContentNetwork, filters: FileFilter
) -> tuple[int, int]:
    """Return the number of files that match the filter, and their bytes."""
    columns = (sa.func.count(), sa.func.coalesce(sa.func.sum(files.c.size), 0))
    query = sa.select(*columns).where(*_tenant_conditions(tenant_id, network), *_conditions(filters))
    number, size = connection.execute(query).one()
    return number, int(size)


def list_pins(
    connection: Connection, tenant_id: str, filters: PinFilter, limit: int, offset: int
) -> tuple[Sequence[File], int]:
    """List public files, including deleted ones, newest first, and the total number of matches."""
    wanted = (files.c.tenant_id == tenant_id, files.c.network == ContentNetwork.PUBLIC, *_pin_conditions(filters))
    count = connection.execute(sa.select(sa.func.count()).select_from(files).where(*wanted)).scalar_one()
    query = page_by_creation(sa.select(files).where(*wanted), files.c.created_at, files.c.id)
    return [_file(row) for row in connection.execute(query.limit(limit).offset(offset))], count


def set_metadata(connection: Connection, file_id: str, metadata: FileMetadata, at: datetime) -> None:
    connection.execute(files.update().where(files.c.id == file_id).values(updated_at=at, **_metadata_values(metadata)))
    connection.execute(file_keyvalues.delete().where(file_keyvalues.c.file_id == file_id))
    _set_keyvalues(connection, file_id, metadata)


def set_group(connection: Connection, file_id: str, group_id: str | None, at: datetime) -> None:
    connection.execute(files.update().where(files.c.id == file_id).values(group_id=group_id, updated_at=at))


def mark_deleted(connection: Connection, file_id: str, at: datetime) -> bool:
    query = files.update().where(files.c.id == file_id, files.c.deleted_at.is_(None))
    return connection.execute(query.values(deleted_at=at)).rowcount == 1


def has_public(connection: Connection, cids: Sequence[str]) -> bool:
    """Return whether any tenant has a public file of one of these CIDs."""
    public = (files.c.network == ContentNetwork.PUBLIC, files.c.deleted_at.is_(None))
    return connection.execute(sa.select(files.c.id).where(files.c.cid.in_(cids), *public).limit(1)).first() is not None


def list_public_cids(connection: Connection, after: str, limit: int) -> Sequence[str]:
    """List the distinct CIDs of the public files of all tenants after one, as stored, in the order of the database."""
    public = (files.c.network == ContentNetwork.PUBLIC, files.c.deleted_at.is_(None))
    query = sa.select(files.c.cid).distinct().where(files.c.cid > after, *public).order_by(files.c.cid).limit(limit)
    return list(connection.execute(query).scalars())


def list_expired(connection: Connection, at: datetime, limit: int) -> Sequence[File]:
    query = sa.select(files).where(files.c.expires_at <= at, files.c.deleted_at.is_(None)).limit(limit)
    return [_file(row) for row in connection.execute(query)]


def _tenant_conditions(tenant_id: str, network: ContentNetwork) -> list[Any]:
    return [files.c.tenant_id == tenant_id, *_listed(network)]


def _listed(network: ContentNetwork) -> list[Any]:
    return [files.c.network == network, files.c.deleted_at.is_(None)]


def _select_files(tenant_id: str, network: ContentNetwork) -> sa.Select[Any]:
    return sa.select(files).where(*_tenant_conditions(tenant_id, network))


def _has_few_files(connection: Connection, key: str, value: str | float) -> bool:
    """Return whether few files, of all tenants, have the keyvalue."""
    others = sa.select(file_keyvalues.c.file_id).where(*_equals(key, value)).offset(_FEW_FILES).limit(1)
    return connection.execute(others).first() is None


def _equals(key: str, value: str | float) -> tuple[Any, Any]:
    return file_keyvalues.c.key == key, file_keyvalues.c.value == format_value(value)


def _conditions(filters: FileFilter, rare: Collection[str] = ()) -> list[Any]:
    """Return the conditions of a filter; `rare` are the keys of keyvalues by which to find files."""
    found: list[Any] = []
    if filters.nothing:
        found.append(sa.false())
    if filters.name is not None:
        found.append(files.c.name.icontains(filters.name, autoescape=True))
    if filters.group_id == UNGROUPED:
        found.append(files.c.group_id.is_(None))
    elif filters.group_id is not None:
        found.append(files.c.group_id == filters.group_id)
    if filters.mime_type is not None:
        found.append(files.c.mime_type == filters.mime_type)
    if filters.cid is not None:
        found.append(files.c.cid.in_(filters.cid))
    for key, value in filters.keyvalues.items():
        pairs = sa.select(file_keyvalues.c.file_id).where(*_equals(key, value))
        is_own = pairs.where(file_keyvalues.c.file_id == files.c.id).exists()
        found.append(files.c.id.in_(pairs) if key in rare else is_own)
    return found


def _pin_conditions(filters: PinFilter) -> list[Any]:
    found: list[Any] = []
    if filters.status != "all":
        found.append(files.c.deleted_at.is_(None) if filters.status == "pinned" else files.c.deleted_at.is_not(None))
    ranges = (
        (files.c.created_at, filters.pinned),
        (files.c.deleted_at, filters.unpinned),
        (files.c.size, filters.size),
    )
    for column, (low, high) in ranges:
        found += [column >= low] if low is not None else []
        found += [column <= high] if high is not None else []
    if filters.hash_contains:
        found.append(files.c.cid.contains(filters.hash_contains, autoescape=True))
    for condition in filters.conditions:
        pair = (file_keyvalues.c.file_id == files.c.id, file_keyvalues.c.key == condition.key)
        found.append(sa.exists().where(*pair, _matches(condition)))
    return found + _conditions(FileFilter(name=filters.name, group_id=filters.group_id or None, cid=filters.cid))


def _matches(condition: KeyvalueCondition) -> Any:
    text, value = file_keyvalues.c.value, condition.value
    pattern = str(value).replace("\\", "\\\\")  # to PostgreSQL alone it would be an escape
    column = text if isinstance(value, str) else _NUMBER
    matches = {
        "eq": text == value,
        "like": text.like(pattern, escape="\\"),
        "ilike": text.ilike(pattern, escape="\\"),
        "gt": column > value,
        "gte": column >= value,
        "lt": column < value,
        "lte": column <= value,
        "between": column.between(value, condition.until),
    }[condition.operator]
    return sa.not_(matches) if condition.negated else matches


_NUMBER = sa.case(  # a cast of something else is an error in PostgreSQL
    (
        file_keyvalues.c.value.regexp_match(r"^-?[0-9]{1,30}(\.[0-9]{1,30})?([eE][-+]?[0-9]{1,2})?\Z"),
        sa.cast(file_keyvalues.c.value, sa.Double),
    ),
    else_=None,
)


def _metadata_values(metadata: FileMetadata) -> dict[str, Any]:
    return {**vars(metadata), "keyvalues": dict(metadata.keyvalues)}


def _set_keyvalues(connection: Connection, file_id: str, metadata: FileMetadata) -> None:
    if metadata.keyvalues:
        rows = [
            {"file_id": file_id, "key": key, "value": format_value(value)} for key, value in metadata.keyvalues.items()
        ]
        connection.execute(file_keyvalues.insert(), rows)


def _file(row: Any) -> File:
    metadata = FileMetadata(row.name, row.keyvalues, row.group_id, row.expires_at)
    return read_record(File, row, network=ContentNetwork(row.network), metadata=metadata)
