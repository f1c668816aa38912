"""Gateways of a tenant: one at first use, names for ever, limits, and nothing of another tenant's."""

import asyncio

import pytest

from roost.core.db import Database
from roost.identity import tenants
from roost.storage.gateways import model
from roost.storage.gateways.model import (
    AccessControlKind,
    AccessControlLimitReached,
    AccessControlNotFound,
    GatewayDomainTaken,
    GatewayLimitReached,
    GatewayNotFound,
    Plugin,
    PluginNotFound,
    is_request_admitted,
)
from roost.storage.gateways.service import StorageGatewayService


@pytest.fixture
def gateways(database: Database) -> StorageGatewayService:
    return StorageGatewayService(database, "https://{}.gateways.example".format)


@pytest.fixture
def owners(database: Database) -> tuple[str, str]:
    mine, theirs = (database.run(lambda c, name=name: tenants.ensure_tenant(c, name).id) for name in ("a", "b"))
    return mine, theirs


async def test_a_tenant_has_one_at_first_use(gateways: StorageGatewayService, owners: tuple[str, str]) -> None:
    lists = await asyncio.gather(*(gateways.list(owners[0], 0, 10) for _ in range(8)))
    (first,) = lists[0][0]
    assert lists == [([first], 1)] * 8
    assert await gateways.get_by_domain(first.domain) == first
    await gateways.delete(owners[0], first.id)
    assert await gateways.list(owners[0], 0, 10) == ([], 0)


async def test_a_name_is_given_once(gateways: StorageGatewayService, owners: tuple[str, str]) -> None:
    made = await gateways.create(owners[0], "Shop")
    assert await gateways.is_domain_taken("shop")
    assert not await gateways.is_domain_taken("shop-2")
    await gateways.delete(owners[0], made.id)
    with pytest.raises(GatewayDomainTaken):
        await gateways.create(owners[1], "shop")
    with pytest.raises(GatewayNotFound):
        await gateways.get_by_domain("shop")


async def test_a_name_that_many_want_goes_to_one(gateways: StorageGatewayService, owners: tuple[str, str]) -> None:
    made = await asyncio.gather(*(gateways.create(owner, "shop") for owner in owners * 4), return_exceptions=True)
    assert sum(isinstance(one, GatewayDomainTaken) for one in made) == 7


async def test_another_tenants_gateway_is_not_there(gateways: StorageGatewayService, owners: tuple[str, str]) -> None:
    made, other = await gateways.create(owners[0], "shop"), owners[1]
    control, _ = await gateways.create_access_token(owners[0], made.id)
    before = await gateways.get(owners[0], made.id)
    for act in (
        gateways.get(other, made.id),
        gateways.delete(other, made.id),
        gateways.create_access_token(other, made.id),
        gateways.add_allowlist_entry(other, made.id, AccessControlKind.HOST, "evil.example"),
        gateways.remove_control(other, made.id, AccessControlKind.TOKEN, control.id),
        gateways.install_plugin(other, made.id, 2),
        gateways.uninstall_plugin(other, made.id, 2),
    ):
        with pytest.raises(GatewayNotFound):
            await act
    assert await gateways.get(owners[0], made.id) == before


async def test_controls_open_and_close(gateways: StorageGatewayService, owners: tuple[str, str]) -> None:
    mine = owners[0]
    made = await gateways.create(mine, "shop")
    control, token = await gateways.create_access_token(mine, made.id)
    assert token.reveal() not in repr(await gateways.get(mine, made.id))
    await gateways.add_allowlist_entry(mine, made.id, AccessControlKind.ADDRESS, "10.0.0.1/8")
    again = await gateways.add_allowlist_entry(mine, made.id, AccessControlKind.ADDRESS, "10.0.0.0/8")
    there = await gateways.get_by_domain("shop")
    assert [one.value for one in there.controls] == [control.value, "10.0.0.0/8"]
    assert is_request_admitted(there, token.reveal(), None, None)
    assert not is_request_admitted(there, control.value, None, None)
    await gateways.remove_control(mine, made.id, AccessControlKind.TOKEN, control.id)
    await gateways.remove_control(mine, made.id, AccessControlKind.ADDRESS, again.value)
    assert (await gateways.get(mine, made.id)).is_restricted
    with pytest.raises(AccessControlNotFound):
        await gateways.remove_control(mine, made.id, AccessControlKind.HOST, control.id)


async def test_limits_are_exact(
    gateways: StorageGatewayService, owners: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model, "GATEWAY_LIMIT", 2)
    monkeypatch.setattr(model, "CONTROL_LIMIT", 2)
    made = await asyncio.gather(*(gateways.create(owners[0], f"shop{n}") for n in range(4)), return_exceptions=True)
    assert sum(isinstance(one, GatewayLimitReached) for one in made) == 2
    shop, _ = await gateways.list(owners[0], 0, 1)
    for host in ("a.example", "b.example"):
        await gateways.add_allowlist_entry(owners[0], shop[0].id, AccessControlKind.HOST, host)
    with pytest.raises(AccessControlLimitReached):
        await gateways.add_allowlist_entry(owners[0], shop[0].id, AccessControlKind.HOST, "c.example")
    await gateways.create_access_token(owners[0], shop[0].id)


async def test_plugins_are_installed_and_removed_by_the_owner(
    gateways: StorageGatewayService, owners: tuple[str, str]
) -> None:
    mine = owners[0]
    made = await gateways.create(mine, "shop")
    for _ in range(2):
        await gateways.install_plugin(mine, made.id, 2)
    assert (await gateways.get(mine, made.id)).plugins == {Plugin.HOT_SWAPS}
    await gateways.uninstall_plugin(mine, made.id, 2)
    assert await gateways.get(mine, made.id) == made
    for number in (0, 1, 2, 3):
        with pytest.raises(PluginNotFound):
            await gateways.uninstall_plugin(mine, made.id, number)
