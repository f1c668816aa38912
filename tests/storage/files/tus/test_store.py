"""Rows of transfers, on both databases."""

import hashlib
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from roost.storage.content.unixfs.profile import V0
from roost.storage.files.tus import store
from roost.storage.files.tus.model import LIFETIME, TusUpload
from tests.storage.storage_env import StorageEnv

NOW = datetime(2026, 11, 21, tzinfo=UTC)
LEAF = 262_144


def digest(number: int) -> bytes:
    return hashlib.sha256(str(number).encode()).digest()


def keep(env: StorageEnv, number: int = 1, **more: Any) -> TusUpload:
    fields = {"filename": "\u00fc\u6f22", "a": "\0"}
    made = TusUpload(
        f"t{number}", f"f{number}", env.tenant_id, 10**12, 1 << 50, fields, ("image/*",), V0, NOW, NOW + LIFETIME
    )
    transfer = replace(made, **more)
    env.db.run(lambda connection: store.insert_transfer(connection, transfer, digest(number)))
    return transfer


def get(env: StorageEnv, number: int = 1) -> TusUpload | None:
    return env.db.run(lambda connection: store.find_transfer(connection, f"t{number}"))


@pytest.mark.parametrize("length", [None, 0, 10**15 - 1])
def test_a_row_there_and_back(env: StorageEnv, length: int | None) -> None:
    transfer = keep(env, length=length, mime_types=())
    assert get(env) == transfer
    assert get(env, 2) is None


@pytest.mark.parametrize(
    ("file_id", "token", "at", "is_there"),
    [
        ("f1", 1, NOW, True),
        ("f1", 1, NOW + LIFETIME - timedelta(microseconds=1), True),
        ("f1", 1, NOW + LIFETIME, False),
        ("f2", 1, NOW, False),
        ("f1", 2, NOW, False),
    ],
)
def test_found_by_its_token_in_its_time(
    env: StorageEnv, file_id: str, token: int, at: datetime, is_there: bool
) -> None:
    transfer = keep(env)
    found = env.db.run(lambda connection: store.find_by_token(connection, file_id, digest(token), at))
    assert found == (transfer if is_there else None)


def test_it_advances_from_where_it_is(env: StorageEnv) -> None:
    before = keep(env)
    after = replace(before, offset=LEAF + 5, hashed=LEAF)
    assert env.db.run(lambda connection: store.save_progress(connection, before, after, digest(1)))
    assert get(env) == after
    assert not env.db.run(lambda connection: store.save_progress(connection, before, after, digest(2)))
    last = replace(after, offset=3 * LEAF, hashed=3 * LEAF)
    assert env.db.run(lambda connection: store.save_progress(connection, after, last, digest(2) + digest(3)))
    assert env.db.run(lambda connection: store.leaf_digests(connection, "t1")) == digest(1) + digest(2) + digest(3)


def test_a_step_without_a_whole_leaf(env: StorageEnv) -> None:
    before = keep(env)
    for offset in (5, 10):
        after = replace(before, offset=offset)
        assert env.db.run(lambda connection, b=before, a=after: store.save_progress(connection, b, a, b""))
        before = after
    assert env.db.run(lambda connection: store.leaf_digests(connection, "t1")) == b""
    assert env.db.run(lambda connection: store.leaf_digests(connection, "unknown")) == b""


def test_a_length_is_told_once(env: StorageEnv) -> None:
    keep(env, length=None)
    env.db.run(lambda connection: store.set_length(connection, "t1", 5))
    env.db.run(lambda connection: store.set_length(connection, "t1", 6))
    found = get(env)
    assert found is not None
    assert found.length == 5


def test_when_it_is_a_file(env: StorageEnv) -> None:
    before = keep(env)
    after = replace(before, offset=LEAF, hashed=LEAF)
    env.db.run(lambda connection: store.save_progress(connection, before, after, digest(1)))
    env.db.run(lambda connection: store.mark_finished(connection, "t1", "cid"))
    assert get(env) == replace(after, cid="cid")
    assert env.db.run(lambda connection: store.leaf_digests(connection, "t1")) == b""


def test_how_many_are_unfinished_and_how_large_they_will_be(env: StorageEnv) -> None:
    keep(env, 1, length=100)
    keep(env, 2, length=None, offset=7)
    keep(env, 3, length=1000, expires_at=NOW)
    keep(env, 4, length=1000, tenant_id=env.other_id)
    assert env.db.run(lambda connection: store.count_unfinished(connection, env.tenant_id, NOW)) == (2, 107)
    env.db.run(lambda connection: store.mark_finished(connection, "t1", "cid"))
    assert env.db.run(lambda connection: store.count_unfinished(connection, env.tenant_id, NOW)) == (1, 7)
    env.db.run(lambda connection: store.delete_transfer(connection, "t2"))
    assert env.db.run(lambda connection: store.count_unfinished(connection, env.tenant_id, NOW)) == (0, 0)


def test_leaves_go_with_it(env: StorageEnv) -> None:
    before = keep(env)
    env.db.run(
        lambda connection: store.save_progress(connection, before, replace(before, offset=LEAF, hashed=LEAF), digest(1))
    )
    env.db.run(lambda connection: store.delete_transfer(connection, "t1"))
    assert env.db.run(lambda connection: store.leaf_digests(connection, "t1")) == b""
    assert get(env) is None


def test_those_that_are_over_begin_with_the_oldest(env: StorageEnv) -> None:
    for number, hours in ((1, 3), (2, 1), (3, 2), (4, 9)):
        keep(env, number, expires_at=NOW + timedelta(hours=hours))
    at = NOW + timedelta(hours=3)
    assert env.db.run(lambda connection: store.list_expired(connection, at, 10)) == ["t2", "t3", "t1"]
    assert env.db.run(lambda connection: store.list_expired(connection, at, 2)) == ["t2", "t3"]
    assert env.db.run(lambda connection: store.list_expired(connection, NOW, 10)) == []
