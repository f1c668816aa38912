"""Agents and files in bulk: rows as the API would write them, made inside the database."""

import time

import sqlalchemy as sa

from roost.agents.registry.store import ASSOCIATED_DATA, agents
from roost.core.db import Connection
from roost.core.seal import Sealer
from roost.identity import tenants
from roost.identity.store import GATEWAY_TOKEN_ASSOCIATED_DATA, gateway_tokens
from roost.identity.tenants import DEFAULT_TENANT
from roost.storage.content.store import blocks, holds, packs, stored
from roost.storage.files.groups.store import groups
from roost.storage.files.store import file_keyvalues, files

GROUP_FILES = 1_000
BATCH_FILES = 10
"""Files with the same keyvalue `batch`."""
_FILE_BYTES = 5


def add_agents(connection: Connection, first: int, last: int, host_id: str, sealer: Sealer) -> None:
    """Add running agents with the numbers `first` to `last`."""
    tenant = _quote(tenants.ensure_tenant(connection, DEFAULT_TENANT).id)
    agent_id, sealed = _spread_id("agent"), _binary(connection, "00")
    _fill(
        connection,
        agents,
        (first, last),
        id=agent_id,
        tenant_id=tenant,
        name="'agent ' || i",
        description="'An agent of a long list.'",
        engine="'fake'",
        engine_version="'1.0.0'",
        internal_sealed=sealed,
        state="'running'",
        deleted="(1 = 0)",
        host_id=_quote(host_id),
        created_at=_TIME,
        updated_at=_TIME,
    )
    digest = _random_binary(connection)
    _fill(
        connection,
        gateway_tokens,
        (first, last),
        agent_id=agent_id,
        tenant_id=tenant,
        digest=digest,
        sealed=sealed,
        created_at=_TIME,
    )
    _seal(connection, agents.c.internal_sealed, agents.c.id, ASSOCIATED_DATA, sealer)
    _seal(connection, gateway_tokens.c.sealed, gateway_tokens.c.agent_id, GATEWAY_TOKEN_ASSOCIATED_DATA, sealer)


def add_files(connection: Connection, first: int, last: int) -> None:
    """Add small public files with the numbers `first` to `last`: in groups, with keyvalues and content."""
    tenant, span = _quote(tenants.ensure_tenant(connection, DEFAULT_TENANT).id), (first, last)
    file_id, pack_id, group = _spread_id("file"), _spread_id("pack"), f"'group ' || ((i - 1) / {GROUP_FILES})"
    times = {"created_at": _TIME, "updated_at": _TIME}
    owned = {"tenant_id": tenant, "network": "'public'"}
    batch = f"'b' || ((i - 1) / {BATCH_FILES})"
    new_groups = ((first - 1 + GROUP_FILES - 1) // GROUP_FILES * GROUP_FILES + 1, last)
    name = f"'group ' || ((i - 1) / {GROUP_FILES})"
    _fill(connection, groups, new_groups, GROUP_FILES, id=group, name=name, is_public="(1 = 0)", **owned, **times)
    _fill(
        connection,
        files,
        span,
        id=file_id,
        cid="'bafkrei' || (1000000000 + i)",
        name="'file ' || i || '.txt'",
        size=str(_FILE_BYTES),
        number_of_files="1",
        mime_type="'text/plain'",
        keyvalues=f"""'{{"kind": "bench", "batch": "' || {batch} || '"}}'""",
        group_id=group,
        **owned,
        **times,
    )
    _fill(connection, file_keyvalues, span, file_id=file_id, key="'kind'", value="'bench'")
    _fill(connection, file_keyvalues, span, file_id=file_id, key="'batch'", value=batch)
    checked = str(time.time_ns() // 1000)  # not due, because the bytes are nowhere
    pack = {"size": str(_FILE_BYTES), "damaged": "(1 = 0)", "created_at": _TIME, "checked_at": checked}
    _fill(connection, packs, span, id=pack_id, **pack)
    _fill(connection, holds, span, pack_id=pack_id, holder=f"'file:' || {file_id}", **owned)
    block = {"codec": "85", "hash": "18", "place": "0", "offset": "0", "length": str(_FILE_BYTES)}
    _fill(connection, blocks, span, digest=_random_binary(connection), pack_id=pack_id, **block)
    row = {"tenant": tenants.ensure_tenant(connection, DEFAULT_TENANT).id, "size": _FILE_BYTES * (last - first + 1)}
    insert = f"INSERT INTO {stored.name} (tenant_id, size) VALUES (:tenant, :size)"
    update = f"ON CONFLICT (tenant_id) DO UPDATE SET size = {stored.name}.size + excluded.size"
    connection.execute(sa.text(f"{insert} {update}"), row)


def _seal(connection: Connection, column: sa.Column[bytes], key: sa.Column[str], bound: str, sealer: Sealer) -> None:
    """Seal a value for each row that has none yet."""
    name, table = key.name, column.table
    missing = connection.execute(sa.select(key).where(column == _UNSEALED)).scalars().all()
    values = [{"row": row, "sealed": sealer.seal(b"bench", bound.format(**{name: row}))} for row in missing]
    if values:
        update = f"UPDATE {table.name} SET {column.name} = :sealed WHERE {name} = :row"
        connection.execute(sa.text(update), values)


_UNSEALED = b"\0"
_TIME = "1790000000000000 + i"
_SPREAD = 2_654_435_761
"""Multiplied modulo 2^32, neighbours lie far apart in an index, as random ids do."""


def _spread_id(kind: str) -> str:
    return f"'{kind}' || (10000000000 + CAST(i AS BIGINT) * {_SPREAD} % 4294967296)"


def _fill(connection: Connection, table: sa.Table, span: tuple[int, int], step: int = 1, /, **expressions: str) -> None:
    """Insert a row for each number `i` of the span, whose columns are SQL expressions."""
    first, last = span
    if first > last:
        return
    unknown = expressions.keys() - table.columns.keys()
    assert not unknown, f"{table.name} has no {unknown}"
    quote = connection.dialect.identifier_preparer.quote
    numbers = f"WITH RECURSIVE n(i) AS (SELECT {first} UNION ALL SELECT i + {step} FROM n WHERE i + {step} <= {last})"
    columns = ", ".join(map(quote, expressions))
    values = ", ".join(expressions.values())
    # `WITH` stands after `INSERT`, as both databases allow.
    statement = f"INSERT INTO {quote(table.name)} ({columns}) {numbers} SELECT {values} FROM n"
    # psycopg looks for placeholders, which begin with a percent sign.
    connection.exec_driver_sql(statement if connection.dialect.name == "sqlite" else statement.replace("%", "%%"))


def _quote(text: str) -> str:
    assert "'" not in text
    return f"'{text}'"


def _binary(connection: Connection, digits: str) -> str:
    return f"X'{digits}'" if connection.dialect.name == "sqlite" else f"decode('{digits}', 'hex')"


def _random_binary(connection: Connection) -> str:
    return "randomblob(32)" if connection.dialect.name == "sqlite" else "sha256(gen_random_uuid()::text::bytea)"
