"""Rows of keys and tokens, on both databases."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from roost.core.db import Database
from roost.identity import store, tenants
from roost.identity.model import ApiKey, KeyFilter

NOW = datetime(2026, 11, 21, tzinfo=UTC)
LATER = NOW + timedelta(days=1)


@pytest.fixture
def tenant(database: Database) -> str:
    return database.run(lambda connection: tenants.ensure_tenant(connection, "a").id)


@pytest.fixture
def other(database: Database) -> str:
    return database.run(lambda connection: tenants.ensure_tenant(connection, "b").id)


def keep(database: Database, tenant: str, number: int = 1, **more: Any) -> ApiKey:
    at = NOW + timedelta(seconds=number)
    scopes = frozenset({"org:read", "org:files:write"})
    made = ApiKey(f"k{number}", tenant, f"Key {number}", scopes, at, LATER, None, f"h{number}", bytes(32))
    key = replace(made, **more)
    database.run(lambda connection: store.add_key(connection, key))
    return key


def chosen(database: Database, tenant: str, **filter_: Any) -> list[str]:
    keys, count = database.run(lambda connection: store.filter_keys(connection, tenant, KeyFilter(**filter_), 0, 100))
    assert count == len(keys)
    return [key.id for key in keys]


@pytest.mark.parametrize("dialect", [pytest.param("postgresql", marks=pytest.mark.postgres)])
def test_transactions_that_insert_rows_of_a_tenant_can_lock_it(database: Database, tenant: str) -> None:
    key = keep(database, tenant)
    with database.writer.begin() as one, database.writer.begin() as two:
        for number, connection in enumerate((one, two)):
            connection.execute(sa.text("SET LOCAL lock_timeout = '5s'"))
            store.add_key(connection, replace(key, id=f"n{number}", handle=None))
        assert store.lock_tenant(one, tenant) is not None
        one.commit()
        assert store.lock_tenant(two, tenant) is not None


@pytest.mark.parametrize(
    "more",
    [{}, {"scopes": frozenset[str]()}, {"handle": None, "proof": None}, {"max_uses": 1}, {"name": "\u00fc\u6f22"}],
)
def test_a_key_there_and_back(database: Database, tenant: str, more: dict[str, Any]) -> None:
    key = keep(database, tenant, **more)
    assert database.run(lambda connection: store.find_key(connection, "k1")) == key
    assert database.run(lambda connection: store.find_key(connection, "k2")) is None
    by_handle = database.run(lambda connection: store.find_key_by_handle(connection, "h1"))
    assert by_handle == (key if key.handle else None)


def test_a_handle_is_one_key_s_and_many_have_none(database: Database, tenant: str, other: str) -> None:
    keep(database, tenant, 1, handle=None)
    keep(database, tenant, 2, handle=None)
    keep(database, tenant, 3)
    with pytest.raises(IntegrityError):
        keep(database, other, 4, handle="h3")


def test_a_key_is_good_for_so_many_requests(database: Database, tenant: str) -> None:
    keep(database, tenant, 1, max_uses=2)
    keep(database, tenant, 2)
    assert [database.run(lambda connection: store.use_key(connection, "k1")) for _ in range(3)] == [True, True, False]
    assert not database.run(lambda connection: store.use_key(connection, "k2"))
    assert not database.run(lambda connection: store.use_key(connection, "unknown"))
    key = database.run(lambda connection: store.find_key(connection, "k1"))
    assert key is not None
    assert key.uses == 2


def test_a_key_is_revoked_once(database: Database, tenant: str) -> None:
    keep(database, tenant)
    assert database.run(lambda connection: store.revoke_key(connection, "k1", NOW)) is True
    assert database.run(lambda connection: store.revoke_key(connection, "k1", LATER)) is False
    assert database.run(lambda connection: store.revoke_key(connection, "unknown", NOW)) is False
    key = database.run(lambda connection: store.find_key(connection, "k1"))
    assert key is not None
    assert key.revoked_at == NOW


@pytest.mark.parametrize(
    ("filter_", "wanted"),
    [
        ({}, ["k4", "k3", "k2", "k1"]),
        ({"revoked": True}, ["k2"]),
        ({"revoked": False}, ["k4", "k3", "k1"]),
        ({"limited": True}, ["k4", "k3"]),
        ({"limited": False}, ["k2", "k1"]),
        ({"exhausted": True}, ["k4"]),
        ({"exhausted": False}, ["k3", "k2", "k1"]),
        ({"limited": True, "exhausted": False}, ["k3"]),
        ({"name": "KEY"}, ["k4", "k3", "k2", "k1"]),
        ({"name": "y 3"}, ["k3"]),
        ({"name": "%"}, []),
        ({"name": "_"}, []),
    ],
)
def test_filters_select_keys(
    database: Database, tenant: str, other: str, filter_: dict[str, Any], wanted: list[str]
) -> None:
    for number, max_uses in ((1, None), (2, None), (3, 5), (4, 1)):
        keep(database, tenant, number, max_uses=max_uses)
    keep(database, other, 5)
    database.run(lambda connection: store.revoke_key(connection, "k2", NOW))
    database.run(lambda connection: store.use_key(connection, "k4"))
    assert chosen(database, tenant, **filter_) == wanted


def test_slices_of_keys(database: Database, tenant: str) -> None:
    for number in range(1, 6):
        keep(database, tenant, number)
    found, count = database.run(lambda connection: store.filter_keys(connection, tenant, KeyFilter(), 1, 2))
    assert ([key.id for key in found], count) == (["k4", "k3"], 5)
    assert [key.id for key in database.run(lambda connection: store.list_keys(connection, tenant))] == [
        f"k{number}" for number in range(1, 6)
    ]


def test_signing_keys_come_in_their_order(database: Database) -> None:
    for number in (2, 1, 3):
        at = NOW + timedelta(seconds=number)
        database.run(lambda connection, n=number, at=at: store.add_signing_key(connection, f"s{n}", b"sealed", at))
    assert [kid for kid, _ in database.run(store.all_signing_keys)] == ["s1", "s2", "s3"]


def test_the_token_of_an_agent(database: Database, tenant: str) -> None:
    def row() -> Any:
        return database.run(lambda connection: store.find_gateway_token(connection, "agent"))

    assert row() is None
    database.run(lambda connection: store.add_gateway_token(connection, "agent", tenant, b"1" * 32, b"one", NOW))
    assert (row().tenant_id, bytes(row().digest), bytes(row().sealed)) == (tenant, b"1" * 32, b"one")
    assert database.run(lambda connection: store.replace_gateway_token(connection, "agent", b"2" * 32, b"two", LATER))
    assert not database.run(lambda connection: store.replace_gateway_token(connection, "x", b"3" * 32, b"", LATER))
    found = [
        database.run(lambda connection, digest=digest: store.find_gateway_token_by_digest(connection, digest))
        for digest in (b"1" * 32, b"2" * 32)
    ]
    assert [one and one.agent_id for one in found] == [None, "agent"]
    database.run(lambda connection: store.remove_gateway_token(connection, "agent"))
    assert row() is None
