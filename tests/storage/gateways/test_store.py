"""Gateways as rows, alike on both databases: names are given once, and what belongs to one goes with it."""

from datetime import UTC, datetime, timedelta

from roost.storage.gateways import store
from roost.storage.gateways.model import AccessControl, AccessControlKind, Plugin, StorageGateway, digest
from tests.storage.house import House

NOW = datetime(2026, 11, 21, tzinfo=UTC)


def keep(place: House, number: int, domain: str | None = None, tenant: str | None = None) -> StorageGateway:
    at = NOW + timedelta(seconds=number)
    gateway = StorageGateway(f"g{number}", tenant or place.tenant_id, domain or f"shop-{number}", at)
    assert place.db.run(lambda connection: store.add(connection, gateway)) is True
    return gateway


def get(place: House, gateway_id: str = "g1", tenant: str | None = None) -> StorageGateway | None:
    return place.db.run(lambda connection: store.get(connection, tenant or place.tenant_id, gateway_id))


def test_a_row_there_and_back(place: House) -> None:
    gateway = keep(place, 1)
    assert get(place) == gateway
    assert get(place, tenant=place.other_id) is None
    assert place.db.run(lambda connection: store.by_domain(connection, "shop-1")) == gateway
    assert place.db.run(lambda connection: store.by_domain(connection, "Shop-1")) is None


def test_all_that_belongs_to_one(place: House) -> None:
    keep(place, 1)
    keep(place, 2)
    token = AccessControl("c1", AccessControlKind.TOKEN, "rgw_abc\u2026", NOW, digest("rgw_abcdef"))
    address = AccessControl("c2", AccessControlKind.ADDRESS, "10.0.0.0/8", NOW + timedelta(seconds=1))

    def equip(connection: object) -> None:
        for control in (address, token):
            store.add_control(connection, "g1", control)
        assert store.install(connection, "g1", Plugin.HOT_SWAPS, NOW)
        assert not store.install(connection, "g1", Plugin.HOT_SWAPS, NOW)

    place.db.run(equip)
    found = get(place)
    assert found is not None
    assert found.controls == (token, address)
    assert found.plugins == {Plugin.HOT_SWAPS}
    assert not found.is_restricted
    other = get(place, "g2")
    assert other is not None
    assert (other.controls, other.plugins) == ((), frozenset())


def test_what_is_taken_away(place: House) -> None:
    test_all_that_belongs_to_one(place)
    place.db.run(lambda connection: store.remove_control(connection, "g2", "c1"))  # which is another gateway's
    place.db.run(lambda connection: store.remove_control(connection, "g1", "c2"))
    assert not place.db.run(lambda connection: store.uninstall(connection, "g1", Plugin.CONTENT_ADDRESSABLE))
    assert place.db.run(lambda connection: store.uninstall(connection, "g1", Plugin.HOT_SWAPS))
    found = get(place)
    assert found is not None
    assert [control.id for control in found.controls] == ["c1"]
    assert found.plugins == frozenset()


def test_a_name_is_given_once_and_for_all(place: House) -> None:
    keep(place, 1, "shop")
    taken = StorageGateway("g2", place.other_id, "shop", NOW)
    assert place.db.run(lambda connection: store.add(connection, taken)) is False
    place.db.run(lambda connection: store.mark_deleted(connection, "g1", NOW))
    assert place.db.run(lambda connection: store.add(connection, taken)) is False
    assert place.db.run(lambda connection: store.is_taken(connection, "shop"))
    assert not place.db.run(lambda connection: store.is_taken(connection, "shop2"))


def test_a_name_that_is_taken_undoes_nothing_else(place: House) -> None:
    """The insert that failed is inside a transaction that goes on."""
    keep(place, 1, "shop")

    def both(connection: object) -> bool:
        store.install(connection, "g1", Plugin.HOT_SWAPS, NOW)
        return store.add(connection, StorageGateway("g2", place.tenant_id, "shop", NOW))

    assert place.db.run(both) is False
    found = get(place)
    assert found is not None
    assert found.plugins == {Plugin.HOT_SWAPS}


def test_one_that_was_deleted_is_counted_no_more(place: House) -> None:
    test_all_that_belongs_to_one(place)
    place.db.run(lambda connection: store.mark_deleted(connection, "g1", NOW))
    assert get(place) is None
    assert place.db.run(lambda connection: store.by_domain(connection, "shop-1")) is None
    assert place.db.run(lambda connection: store.count(connection, place.tenant_id)) == 1
    assert place.db.run(lambda connection: store.count(connection, place.tenant_id, deleted=True)) == 2
    assert place.db.run(lambda connection: store.count(connection, place.other_id, deleted=True)) == 0


def test_pages_begin_with_the_oldest(place: House) -> None:
    for number in (3, 1, 2):
        keep(place, number)
    keep(place, 4, tenant=place.other_id)

    def page(offset: int, limit: int) -> list[str]:
        found = place.db.run(lambda connection: store.page(connection, place.tenant_id, offset, limit))
        return [gateway.id for gateway in found]

    assert page(0, 10) == ["g1", "g2", "g3"]
    assert page(1, 1) == ["g2"]
    assert page(3, 10) == []
