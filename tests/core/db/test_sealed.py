"""Every sealed column declares its context, and the walk over all sealed columns is complete."""

from importlib import import_module
from pathlib import Path

import pytest
import sqlalchemy as sa

import roost
from roost.core.db import Database, metadata, sealed
from roost.core.seal import Sealer
from roost.core.sensitive import Sensitive
from roost.identity import tenants
from roost.identity.gateway_tokens import GatewayTokens

OLD, NEW = Sensitive(bytes(range(32))), Sensitive(bytes(range(1, 33)))


def fill(database: Database, count: int, key: Sensitive[bytes] = OLD, prefix: str = "a") -> None:
    gateways = GatewayTokens(database, Sealer(key))

    def add(connection: sa.Connection) -> None:
        tenant = tenants.ensure_tenant(connection, "acme")
        for number in range(count):
            gateways.mint(connection, f"{prefix}{number}", tenant.id)

    database.run(add)


def column() -> sealed.Column:
    return metadata.tables["gateway_tokens"].c.sealed


def test_every_sealed_column_of_the_package_says_its_place() -> None:
    for path in Path(roost.__file__).parent.rglob("store.py"):
        import_module(".".join(path.relative_to(Path(roost.__file__).parent.parent).with_suffix("").parts))
    declared = set(sealed.sealed_columns())
    mute = [
        str(one)
        for table in metadata.sorted_tables
        for one in table.columns
        if "sealed" in one.name and isinstance(one.type, sa.LargeBinary) and one not in declared
    ]
    assert not mute, "declare these with sealed_column, or their values are lost when the key is changed"
    assert {one.table.name for one in declared} >= {"secrets", "agents", "gateway_tokens", "signing_keys"}


def test_the_keys_in_use_are_found(database: Database) -> None:
    assert database.run(sealed.key_ids) == set()
    fill(database, 2)
    fill(database, 1, NEW, "b")
    assert database.run(sealed.key_ids) == {Sealer(OLD).key_id, Sealer(NEW).key_id}


async def test_page_by_page_all_is_renewed_and_what_does_not_open_is_skipped(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sealed, "_PAGE", 3)
    fill(database, 5)
    fill(database, 4, Sensitive(bytes(32)), "A")  # first in order; no key opens it
    both, skip, renewed = Sealer(NEW, OLD), 0, 0
    for _ in range(4):
        done = database.run(lambda connection, skip=skip: sealed.reseal_page(connection, both, column(), skip))
        skip, renewed = skip + done.lost, renewed + done.renewed
        if not done.more:
            break
    assert (renewed, skip, done.more) == (5, 4, False)
    gateways = GatewayTokens(database, Sealer(NEW))
    for number in range(5):
        assert (await gateways.read(f"a{number}")).reveal().startswith("rst_gw_")


def test_the_lock_lets_readers_and_later_writers_through(database: Database) -> None:
    database.run(sealed.lock_sealed_writes)
    fill(database, 1)
    assert database.run(sealed.key_ids)
