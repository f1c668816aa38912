from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from roost.storage.content.model import ContentNetwork
from roost.storage.swaps import store
from roost.storage.swaps.model import HotSwap
from tests.storage.house import House

NOW = datetime(2026, 11, 21, tzinfo=UTC)
PUBLIC, PRIVATE = ContentNetwork.PUBLIC, ContentNetwork.PRIVATE


def keep(
    place: House, number: int, mapped: str | None = "to", cid: str = "cid", network: ContentNetwork = PUBLIC
) -> HotSwap:
    swap = HotSwap(f"s{number}", place.tenant_id, network, cid, mapped, NOW + timedelta(seconds=number))
    place.db.run(lambda connection: store.add(connection, swap))
    return swap


def history(place: House, limit: int = 10, cid: str = "cid", network: ContentNetwork = PUBLIC) -> Sequence[HotSwap]:
    return place.db.run(lambda connection: store.history(connection, place.tenant_id, network, cid, limit))


def test_the_newest_is_the_first(place: House) -> None:
    swaps = [keep(place, number, mapped) for number, mapped in ((2, "b"), (1, "a"), (3, None))]
    assert history(place) == [swaps[2], swaps[0], swaps[1]]
    assert history(place, 1) == [swaps[2]]


def test_every_cid_tenant_and_network_has_its_own(place: House) -> None:
    one, other, private = keep(place, 1), keep(place, 2, cid="other"), keep(place, 3, network=PRIVATE)
    assert history(place) == [one]
    assert history(place, cid="other") == [other]
    assert history(place, network=PRIVATE) == [private]
    assert place.db.run(lambda connection: store.history(connection, place.other_id, PUBLIC, "cid", 10)) == []


def test_lines_are_removed_by_their_ids(place: House) -> None:
    for number in range(4):
        keep(place, number)
    place.db.run(lambda connection: store.remove(connection, ["s0", "s2", "unknown"]))
    assert [swap.id for swap in history(place)] == ["s3", "s1"]
    place.db.run(lambda connection: store.remove(connection, []))
    assert len(history(place)) == 2
