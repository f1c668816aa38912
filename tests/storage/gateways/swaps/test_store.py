from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from roost.storage.content.model import ContentNetwork
from roost.storage.gateways.swaps import store
from roost.storage.gateways.swaps.model import HotSwap
from tests.storage.storage_env import StorageEnv

NOW = datetime(2026, 11, 21, tzinfo=UTC)
PUBLIC, PRIVATE = ContentNetwork.PUBLIC, ContentNetwork.PRIVATE


def keep(
    env: StorageEnv, number: int, mapped: str | None = "to", cid: str = "cid", network: ContentNetwork = PUBLIC
) -> HotSwap:
    swap = HotSwap(f"s{number}", env.tenant_id, network, cid, mapped, NOW + timedelta(seconds=number))
    env.db.run(lambda connection: store.insert_swap(connection, swap))
    return swap


def history(env: StorageEnv, limit: int = 10, cid: str = "cid", network: ContentNetwork = PUBLIC) -> Sequence[HotSwap]:
    return env.db.run(lambda connection: store.list_swaps(connection, env.tenant_id, network, cid, limit))


def test_the_newest_is_the_first(env: StorageEnv) -> None:
    swaps = [keep(env, number, mapped) for number, mapped in ((2, "b"), (1, "a"), (3, None))]
    assert history(env) == [swaps[2], swaps[0], swaps[1]]
    assert history(env, 1) == [swaps[2]]


def test_every_cid_tenant_and_network_has_its_own(env: StorageEnv) -> None:
    one, other, private = keep(env, 1), keep(env, 2, cid="other"), keep(env, 3, network=PRIVATE)
    assert history(env) == [one]
    assert history(env, cid="other") == [other]
    assert history(env, network=PRIVATE) == [private]
    assert env.db.run(lambda connection: store.list_swaps(connection, env.other_id, PUBLIC, "cid", 10)) == []


def test_lines_are_removed_by_their_ids(env: StorageEnv) -> None:
    for number in range(4):
        keep(env, number)
    env.db.run(lambda connection: store.delete_swaps(connection, ["s0", "s2", "unknown"]))
    assert [swap.id for swap in history(env)] == ["s3", "s1"]
    env.db.run(lambda connection: store.delete_swaps(connection, []))
    assert len(history(env)) == 2
