"""Gateways as rows, alike on both databases: names are given once, and what belongs to one goes with it."""

from contextlib import suppress
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import Connection

from roost.storage.gateways import store
from roost.storage.gateways.model import (
    AccessControl,
    AccessControlKind,
    GatewayNotFound,
    Plugin,
    StorageGateway,
    hash_token,
)
from tests.storage.storage_env import StorageEnv

NOW = datetime(2026, 11, 21, tzinfo=UTC)


def keep(env: StorageEnv, number: int, domain: str | None = None, tenant: str | None = None) -> StorageGateway:
    at = NOW + timedelta(seconds=number)
    gateway = StorageGateway(f"g{number}", tenant or env.tenant_id, domain or f"shop-{number}", at)
    assert env.db.run(lambda connection: store.insert_gateway(connection, gateway)) is True
    return gateway


def get(env: StorageEnv, gateway_id: str = "g1", tenant: str | None = None) -> StorageGateway | None:
    with suppress(GatewayNotFound):
        return env.db.run(lambda connection: store.get_gateway(connection, tenant or env.tenant_id, gateway_id))
    return None


def test_a_row_there_and_back(env: StorageEnv) -> None:
    gateway = keep(env, 1)
    assert get(env) == gateway
    assert get(env, tenant=env.other_id) is None
    assert env.db.run(lambda connection: store.get_gateway_by_domain(connection, "shop-1")) == gateway
    with pytest.raises(GatewayNotFound):
        env.db.run(lambda connection: store.get_gateway_by_domain(connection, "Shop-1"))


def test_all_that_belongs_to_one(env: StorageEnv) -> None:
    keep(env, 1)
    keep(env, 2)
    token = AccessControl("c1", AccessControlKind.TOKEN, "rgw_abc\u2026", NOW, hash_token("rgw_abcdef"))
    address = AccessControl("c2", AccessControlKind.ADDRESS, "10.0.0.0/8", NOW + timedelta(seconds=1))

    def equip(connection: Connection) -> None:
        for control in (address, token):
            store.insert_control(connection, "g1", control)
        assert store.insert_plugin(connection, "g1", Plugin.HOT_SWAPS, NOW)
        assert not store.insert_plugin(connection, "g1", Plugin.HOT_SWAPS, NOW)

    env.db.run(equip)
    found = get(env)
    assert found is not None
    assert found.controls == (token, address)
    assert found.plugins == {Plugin.HOT_SWAPS}
    assert not found.is_restricted
    other = get(env, "g2")
    assert other is not None
    assert (other.controls, other.plugins) == ((), frozenset())


def test_removed_controls_and_plugins_are_gone(env: StorageEnv) -> None:
    test_all_that_belongs_to_one(env)
    env.db.run(lambda connection: store.delete_control(connection, "g2", "c1"))  # which is another gateway's
    env.db.run(lambda connection: store.delete_control(connection, "g1", "c2"))
    assert not env.db.run(lambda connection: store.delete_plugin(connection, "g1", Plugin.CONTENT_ADDRESSABLE))
    assert env.db.run(lambda connection: store.delete_plugin(connection, "g1", Plugin.HOT_SWAPS))
    found = get(env)
    assert found is not None
    assert [control.id for control in found.controls] == ["c1"]
    assert found.plugins == frozenset()


def test_a_name_is_given_once_and_for_all(env: StorageEnv) -> None:
    keep(env, 1, "shop")
    taken = StorageGateway("g2", env.other_id, "shop", NOW)
    assert env.db.run(lambda connection: store.insert_gateway(connection, taken)) is False
    env.db.run(lambda connection: store.mark_deleted(connection, "g1", NOW))
    assert env.db.run(lambda connection: store.insert_gateway(connection, taken)) is False
    assert env.db.run(lambda connection: store.is_domain_taken(connection, "shop"))
    assert not env.db.run(lambda connection: store.is_domain_taken(connection, "shop2"))


def test_a_name_that_is_taken_undoes_nothing_else(env: StorageEnv) -> None:
    """The insert that failed is inside a transaction that goes on."""
    keep(env, 1, "shop")

    def both(connection: Connection) -> bool:
        store.insert_plugin(connection, "g1", Plugin.HOT_SWAPS, NOW)
        return store.insert_gateway(connection, StorageGateway("g2", env.tenant_id, "shop", NOW))

    assert env.db.run(both) is False
    found = get(env)
    assert found is not None
    assert found.plugins == {Plugin.HOT_SWAPS}


def test_one_that_was_deleted_is_counted_no_more(env: StorageEnv) -> None:
    test_all_that_belongs_to_one(env)
    env.db.run(lambda connection: store.mark_deleted(connection, "g1", NOW))
    assert get(env) is None
    with pytest.raises(GatewayNotFound):
        env.db.run(lambda connection: store.get_gateway_by_domain(connection, "shop-1"))
    assert env.db.run(lambda connection: store.count_gateways(connection, env.tenant_id)) == 1
    assert env.db.run(lambda connection: store.count_gateways(connection, env.tenant_id, deleted=True)) == 2
    assert env.db.run(lambda connection: store.count_gateways(connection, env.other_id, deleted=True)) == 0


def test_pages_begin_with_the_oldest(env: StorageEnv) -> None:
    for number in (3, 1, 2):
        keep(env, number)
    keep(env, 4, tenant=env.other_id)

    def page(offset: int, limit: int) -> list[str]:
        found = env.db.run(lambda connection: store.list_gateways(connection, env.tenant_id, offset, limit))
        return [gateway.id for gateway in found]

    assert page(0, 10) == ["g1", "g2", "g3"]
    assert page(1, 1) == ["g2"]
    assert page(3, 10) == []
