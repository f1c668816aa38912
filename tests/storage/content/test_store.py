"""The index of content on both databases: owners, the copy to read, the packs to delete."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy.exc import IntegrityError

from roost.storage.content import store
from roost.storage.content.errors import ContentNotFound
from roost.storage.content.model import (
    BlockLocation,
    BlockMatch,
    BlockRow,
    ContentNetwork,
    ContentScope,
    Pack,
    PackReference,
    TreeRow,
)
from roost.storage.content.unixfs.cid import DAG_PB, IDENTITY, RAW, Cid
from tests.storage.storage_env import StorageEnv

NOW = datetime(2026, 11, 21, tzinfo=UTC)
PUBLIC, PRIVATE = ContentNetwork.PUBLIC, ContentNetwork.PRIVATE
A, B, NODE = Cid.for_block(RAW, b"a"), Cid.for_block(RAW, b"b"), Cid.for_block(DAG_PB, b"node")
ROWS = (
    BlockRow(A, BlockLocation.SLICE, 0, 1),
    BlockRow(B, BlockLocation.FRAMED, 1 << 40, 1),
    BlockRow(NODE, BlockLocation.INLINE, length=4, data=b"node"),
)
LEAVES = b"".join(bytes([number]) * 32 for number in range(5))


def keep(env: StorageEnv, number: int = 1, *, size: int = 10, rows: Sequence[BlockRow] = ROWS) -> str:
    pack = Pack(f"{number:032}", size, NOW + timedelta(seconds=number))
    trees = [TreeRow(NODE, "v1", 7, 1 << 41, LEAVES)]
    env.db.run(lambda connection: store.add_pack(connection, pack, rows, trees))
    return pack.id


def hold(
    env: StorageEnv, pack_id: str, holder: str = "file/1", network: ContentNetwork = PRIVATE, tenant: str | None = None
) -> None:
    one = PackReference(pack_id, holder, tenant or env.tenant_id, network)
    env.db.run(lambda connection: store.hold_pack(connection, one))


def find(env: StorageEnv, cid: Cid, scope: ContentScope | None = None) -> BlockMatch | None:
    found = env.db.run(lambda connection: store.find_block(connection, scope or env.scope, cid))
    other = Cid.for_block(RAW, b"other")
    many = env.db.run(lambda connection: store.find_blocks(connection, scope or env.scope, [other, cid, cid]))
    assert list(many) == [None, found, found]
    return found


def stored(env: StorageEnv, tenant: str | None = None) -> int:
    return env.db.run(lambda connection: store.stored_bytes(connection, tenant or env.tenant_id))


def held_by(env: StorageEnv, pack_id: str) -> Sequence[str]:
    return env.db.run(lambda connection: store.list_holders(connection, pack_id, 10))


@pytest.mark.parametrize("row", ROWS, ids=("slice", "framed", "inline"))
def test_a_block_is_found_where_it_is(env: StorageEnv, row: BlockRow) -> None:
    pack_id = keep(env)
    hold(env, pack_id)
    assert find(env, row.cid) == BlockMatch(pack_id, row)


def test_its_bytes_are_the_same_under_any_codec(env: StorageEnv) -> None:
    hold(env, keep(env))
    as_node = Cid(1, DAG_PB, A.hash, A.digest)
    found = find(env, as_node)
    assert found is not None
    assert (found.row.cid, found.row.length) == (as_node, 1)
    assert find(env, Cid(1, RAW, IDENTITY, A.digest)) is None


@pytest.mark.parametrize("number", [1 << 31, (1 << 63) - 1])
def test_nothing_is_found_under_a_hash_of_any_number(env: StorageEnv, number: int) -> None:
    hold(env, keep(env))
    assert find(env, Cid(1, RAW, number, A.digest)) is None


def test_nobody_sees_what_nobody_holds(env: StorageEnv) -> None:
    keep(env)
    assert find(env, A) is None


@pytest.mark.parametrize(
    ("network", "scopes"),
    [
        (PRIVATE, {"mine private"}),
        (PUBLIC, {"mine public", "all public"}),
    ],
)
def test_who_sees_what_is_held(env: StorageEnv, network: ContentNetwork, scopes: set[str]) -> None:
    hold(env, keep(env), network=network)
    every = {
        "mine private": ContentScope(PRIVATE, env.tenant_id),
        "mine public": ContentScope(PUBLIC, env.tenant_id),
        "all public": ContentScope(PUBLIC),
        "their private": ContentScope(PRIVATE, env.other_id),
        "their public": ContentScope(PUBLIC, env.other_id),
    }
    assert {name for name, scope in every.items() if find(env, A, scope)} == scopes


def test_the_copy_that_is_whole_is_read(env: StorageEnv) -> None:
    for number in (1, 2):
        hold(env, keep(env, number), f"file/{number}")
    for damaged, found in ((1, 2), (2, 1)):
        env.db.run(lambda connection, n=damaged: store.mark_damaged(connection, f"{n:032}"))
        other = env.db.run(lambda connection, n=found: store.mark_checked(connection, [f"{n:032}"], NOW, damaged=False))
        assert other is None
        block = find(env, A)
        assert block is not None
        assert block.pack_id == f"{found:032}"


def test_repeated_blocks_of_a_pack_are_kept_once(env: StorageEnv) -> None:
    again = (
        ROWS[0],
        BlockRow(A, BlockLocation.SLICE, 5, 1),
        *(BlockRow(Cid.for_block(RAW, bytes([n])), BlockLocation.SLICE, n, 1) for n in range(9)),
    )
    pack_id = keep(env, rows=again)
    rows = env.db.run(lambda connection: store.list_blocks(connection, pack_id, b"", 100))
    assert len(rows) == 10
    with pytest.raises(IntegrityError):
        keep(env)


def test_many_blocks_at_once(env: StorageEnv) -> None:
    rows = [
        BlockRow(Cid.for_block(RAW, str(number).encode()), BlockLocation.SLICE, number, 1) for number in range(4001)
    ]
    pack_id = keep(env, rows=rows)
    seen: list[bytes] = []
    after = b""
    while page := env.db.run(lambda connection, after=after: store.list_blocks(connection, pack_id, after, 1500)):
        seen += [row.cid.digest for row in page]
        after = seen[-1]
    assert seen == sorted(row.cid.digest for row in rows)


@pytest.mark.parametrize(
    ("first", "count", "numbers"), [(0, 5, [0, 1, 2, 3, 4]), (1, 2, [1, 2]), (4, 9, [4]), (5, 1, []), (0, 0, [])]
)
def test_some_of_a_file_s_digests(env: StorageEnv, first: int, count: int, numbers: list[int]) -> None:
    pack_id = keep(env)
    found = env.db.run(lambda connection: store.leaf_digests(connection, pack_id, NODE, first, count))
    assert bytes(found) == b"".join(bytes([number]) * 32 for number in numbers)


def test_a_file_is_told_without_its_digests(env: StorageEnv) -> None:
    pack_id = keep(env)
    tree = env.db.run(lambda connection: store.find_tree(connection, pack_id, NODE))
    assert tree == TreeRow(NODE, "v1", 7, 1 << 41, b"")
    assert env.db.run(lambda connection: store.find_tree(connection, pack_id, A)) is None


def test_stored_bytes_count_each_hold(env: StorageEnv) -> None:
    assert stored(env) == 0
    pack_id = keep(env, size=1 << 50)
    hold(env, pack_id, "file/1")
    hold(env, pack_id, "file/2", PUBLIC)
    hold(env, keep(env, 2, size=5), "file/3", tenant=env.other_id)
    assert (stored(env), stored(env, env.other_id)) == (2 << 50, 5)
    env.db.run(lambda connection: store.release_packs(connection, "file/1"))
    assert (stored(env), stored(env, env.other_id)) == (1 << 50, 5)
    env.db.run(lambda connection: store.release_packs(connection, "nobody"))
    env.db.run(lambda connection: store.release_packs(connection, "file/2"))
    assert stored(env) == 0


def test_the_packs_of_a_holder_are_replaced(env: StorageEnv) -> None:
    one, two, three = (keep(env, number, size=10**number) for number in (1, 2, 3))
    hold(env, one, "file/1")

    def replace(*pack_ids: str) -> tuple[set[str], int]:
        env.db.run(lambda db: store.hold_packs(db, "snapshot/1", env.tenant_id, PRIVATE, pack_ids))
        held = {pack for pack in (one, two, three) if "snapshot/1" in held_by(env, pack)}
        return held, stored(env) - 10

    assert replace(one, two) == ({one, two}, 110)
    assert replace(two, three, three) == ({two, three}, 1100)
    assert held_by(env, one) == ["file/1"]
    assert replace(two, three) == ({two, three}, 1100)
    with pytest.raises(ContentNotFound):
        replace(one, "gone")
    assert replace(two, three) == ({two, three}, 1100)
    assert replace() == (set(), 0)


def test_a_holder_may_have_many_packs(env: StorageEnv) -> None:
    packs = [keep(env, number, size=1, rows=()) for number in range(1101)]
    for wanted in (packs, packs[1:], []):
        env.db.run(lambda db, ids=wanted: store.hold_packs(db, "snapshot/1", env.tenant_id, PRIVATE, ids))
        assert stored(env) == len(wanted)


def test_many_blocks_are_found_at_once_and_each_once(env: StorageEnv) -> None:
    rows = [BlockRow(Cid.for_block(RAW, str(n).encode()), BlockLocation.SLICE, n, 1) for n in range(1101)]
    for number in (1, 2):
        pack_id = keep(env, number, rows=rows)
        for holder in ("file/1", "file/2"):
            hold(env, pack_id, f"{holder}/{number}")
    env.db.run(lambda db: store.mark_damaged(db, f"{1:032}"))
    found = env.db.run(lambda db: store.find_blocks(db, env.scope, [row.cid for row in rows]))
    assert found == [BlockMatch(f"{2:032}", row) for row in rows]


def test_packs_without_holds_are_removable(env: StorageEnv) -> None:
    held, free, young = (keep(env, number) for number in (1, 2, 3))
    hold(env, held)
    before = NOW + timedelta(seconds=3)
    assert env.db.run(lambda connection: store.list_unheld(connection, before, "", 10)) == [free]
    assert env.db.run(lambda connection: store.list_unheld(connection, before + timedelta(1), "", 1)) in (
        [free],
        [young],
    )
    assert env.db.run(lambda connection: store.remove_unheld(connection, held)) is False
    assert env.db.run(lambda connection: store.remove_unheld(connection, free)) is True
    assert env.db.run(lambda connection: store.remove_unheld(connection, free)) is False
    assert env.db.run(lambda connection: store.known_packs(connection, [held, free, young, "x"])) == {held, young}
    assert env.db.run(lambda connection: store.list_blocks(connection, free, b"", 10)) == []
    assert env.db.run(lambda connection: store.find_tree(connection, free, NODE)) is None


def test_a_pack_that_somebody_took_meanwhile_stays(env: StorageEnv) -> None:
    pack_id = keep(env)
    assert env.db.run(lambda connection: store.list_unheld(connection, NOW + timedelta(1), "", 10)) == [pack_id]
    hold(env, pack_id)
    assert env.db.run(lambda connection: store.remove_unheld(connection, pack_id)) is False
    assert find(env, A) is not None


def list_unchecked(env: StorageEnv, hours: int, after: tuple[datetime | None, str], limit: int = 10) -> list[Pack]:
    before = NOW + timedelta(hours=hours)
    return list(env.db.run(lambda connection: store.list_unchecked(connection, before, after, limit)))


def test_which_packs_are_checked_next(env: StorageEnv) -> None:
    for number in (1, 2, 3, 4, 5):
        hold(env, keep(env, number), f"file/{number}")
    keep(env, 6)  # of no holder
    for number, hours in ((3, 1), (2, 0), (1, 2)):
        at = NOW + timedelta(hours=hours)
        env.db.run(lambda connection, n=number, at=at: store.mark_checked(connection, [f"{n:032}"], at, damaged=n == 2))
    assert [int(pack.id) for pack in list_unchecked(env, 2, (None, ""))] == [4, 5, 2, 3]
    assert env.db.run(lambda connection: store.count_unchecked(connection, NOW + timedelta(hours=2))) == 5
    order: list[int] = []
    after: tuple[datetime | None, str] = (None, "")
    while page := list_unchecked(env, 3, after, 2):
        order += [int(pack.id) for pack in page]
        after = (page[-1].checked_at, page[-1].id)
    assert order == [4, 5, 2, 3, 1]
    assert list_unchecked(env, 0, (None, f"{5:032}")) == []


def test_who_is_hurt(env: StorageEnv) -> None:
    first, second = keep(env, 1), keep(env, 2)
    for holder, pack_id in (("file/b", first), ("file/a", first), ("file/c", second)):
        hold(env, pack_id, holder)
    free = keep(env, 3)
    for pack_id in (first, free):
        env.db.run(lambda connection, p=pack_id: store.mark_damaged(connection, p))
    assert env.db.run(store.count_damaged) == 1
    assert env.db.run(lambda connection: store.list_holders(connection, first, 10)) == ["file/a", "file/b"]
    assert env.db.run(lambda connection: store.list_holders(connection, first, 1)) == ["file/a"]
    assert env.db.run(lambda connection: store.holders_of_damaged(connection, "", 10)) == ["file/a", "file/b"]
    assert env.db.run(lambda connection: store.holders_of_damaged(connection, "file/a", 10)) == ["file/b"]
    hurt = [env.db.run(lambda connection, h=h: store.holds_damaged(connection, h)) for h in ("file/a", "file/c", "x")]
    assert hurt == [True, False, False]
    env.db.run(lambda connection: store.mark_checked(connection, [first], NOW, damaged=False))
    assert env.db.run(store.count_damaged) == 0
