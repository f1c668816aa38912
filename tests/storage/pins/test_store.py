"""Pins as rows: the same answers on both databases, whatever names and pairs people choose."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from roost.core.page_cursor import PageCursor
from roost.storage.content.model import ContentNetwork
from roost.storage.files import store as files
from roost.storage.files.model import File, FileMetadata
from roost.storage.pins import store
from roost.storage.pins.model import ACTIVE, FAILED, NameMatch, Pin, PinQuery, PinRequest, PinState
from tests.storage.storage_env import StorageEnv

NOW = datetime(2026, 11, 21, tzinfo=UTC)
ALL = tuple(PinState)


def keep(
    env: StorageEnv, number: int, ask: PinRequest | None = None, status: PinState = PinState.SEARCHING, **more: Any
) -> Pin:
    at = NOW + timedelta(seconds=number)
    made = Pin(f"p{number}", env.tenant_id, ask or PinRequest(f"cid{number}"), status, None, at, at)
    pin = replace(made, **more)
    env.db.run(lambda connection: store.insert_pin(connection, pin))
    return pin


def found(env: StorageEnv, wanted: PinQuery, **more: Any) -> Sequence[str]:
    page = env.db.run(lambda connection: store.list_pins(connection, env.tenant_id, wanted, more.get("after"), 100))
    count = env.db.run(lambda connection: store.count_pins(connection, env.tenant_id, wanted))
    assert "after" in more or count == len(page)
    return [pin.id for pin in page]


def named(env: StorageEnv, *names: str | None) -> None:
    for number, name in enumerate(names, 1):
        keep(env, number, PinRequest(f"cid{number}", name))


def test_a_row_there_and_back(env: StorageEnv) -> None:
    ask = PinRequest(
        "cid", "\u00fc\u6f22 'n'", {"a": 1, "b": True, "c": "\u0000"}, None, ("/dns4/a", "/dns4/b"), {"m": "\ud800"}
    )
    pin = keep(env, 1, ask, updated_at=NOW + timedelta(hours=1))
    assert env.db.run(lambda connection: store.get_pin(connection, "p1")) == pin
    assert env.db.run(lambda connection: store.get_pin(connection, "p1", env.tenant_id, lock=True)) == pin
    assert env.db.run(lambda connection: store.get_pin(connection, "p1", env.other_id)) is None
    assert env.db.run(lambda connection: store.get_pin(connection, "p2")) is None


@pytest.mark.parametrize(
    ("name", "match", "wanted"),
    [
        ("Alpha", NameMatch.EXACT, ["p1"]),
        ("alpha", NameMatch.EXACT, []),
        ("alpha", NameMatch.IEXACT, ["p1"]),
        ("ALPHA", NameMatch.IEXACT, ["p1"]),
        ("alph", NameMatch.IEXACT, []),
        ("\u00dc_%", NameMatch.EXACT, ["p3"]),
        ("\u00dc_%", NameMatch.IEXACT, ["p3"]),
        ("lph", NameMatch.PARTIAL, ["p2", "p1"]),
        ("LPH", NameMatch.PARTIAL, []),
        ("LPH", NameMatch.IPARTIAL, ["p2", "p1"]),
        ("_", NameMatch.PARTIAL, ["p3"]),
        ("%", NameMatch.IPARTIAL, ["p3"]),
        ("\\", NameMatch.PARTIAL, ["p4"]),
        ("\\", NameMatch.IPARTIAL, ["p4"]),
        ("", NameMatch.EXACT, []),
    ],
)
def test_how_names_are_compared(env: StorageEnv, name: str, match: NameMatch, wanted: list[str]) -> None:
    named(env, "Alpha", "xalphax", "\u00dc_%", "a\\b", None)
    assert found(env, PinQuery(ALL, name=name, match=match)) == wanted


@pytest.mark.parametrize(
    ("meta", "wanted"),
    [
        ({}, ["p3", "p2", "p1"]),
        ({"a": "1"}, ["p2", "p1"]),
        ({"b": "x"}, ["p1"]),
        ({"a": "1", "b": "x"}, ["p1"]),
        ({"a": "2"}, []),
        ({"A": "1"}, []),
        ({"x": "1"}, []),  # which stands inside a value
        ({"a": ""}, []),
        ({"c": '"x":"1"'}, ["p3"]),
        ({"\u6f22": "%_\\"}, ["p2"]),
    ],
)
def test_pairs_of_the_other_api(env: StorageEnv, meta: dict[str, str], wanted: list[str]) -> None:
    texts = ({"a": "1", "b": "x"}, {"\u6f22": "%_\\", "a": "1"}, {"c": '"x":"1"', "d": ',"x":"1"'})
    for number, pairs in enumerate(texts, 1):
        keep(env, number, PinRequest(f"cid{number}", meta=pairs))
    assert found(env, PinQuery(ALL, meta=meta)) == wanted


def test_list_has_own_pins_in_order(env: StorageEnv) -> None:
    for number, status in enumerate(PinState, 1):
        keep(env, number, status=status)
    second, third = NOW + timedelta(seconds=2), NOW + timedelta(seconds=3)
    for wanted, ids in (
        (PinQuery([PinState.SEARCHING]), ["p2"]),
        (PinQuery([]), []),
        (PinQuery(ALL, cid=["cid1", "cid3", "cid"]), ["p3", "p1"]),
        (PinQuery(ALL, cid=["cid1", "cid3"], ascending=True), ["p1", "p3"]),
        (PinQuery(ALL, cid=[]), []),
        (PinQuery(ALL, before=second), ["p1"]),
        (PinQuery(ACTIVE, after=second), ["p3"]),
        (PinQuery(ALL, after=NOW + timedelta(seconds=1), before=third), ["p2"]),
    ):
        assert found(env, wanted) == ids
    assert env.db.run(lambda connection: store.count_pins(connection, env.other_id, PinQuery(ALL))) == 0


@pytest.mark.parametrize("ascending", [True, False])
def test_pages_of_pins_that_came_at_one_moment(env: StorageEnv, ascending: bool) -> None:
    for number in range(1, 5):
        keep(env, number, created_at=NOW)
    order = ["p1", "p2", "p3", "p4"] if ascending else ["p4", "p3", "p2", "p1"]
    wanted = PinQuery(ALL, ascending=ascending)
    assert found(env, wanted) == order
    assert found(env, wanted, after=PageCursor(NOW, order[1])) == order[2:]
    assert found(env, wanted, after=PageCursor(NOW, order[3])) == []


def test_a_status_with_its_file(env: StorageEnv) -> None:
    keep(env, 1)
    file = File("f", env.tenant_id, ContentNetwork.PRIVATE, "cid1", 1, 1, "text/plain", FileMetadata(), NOW, NOW)
    env.db.run(lambda connection: files.insert_file(connection, file))
    at = NOW + timedelta(hours=1)
    env.db.run(lambda connection: store.set_status(connection, "p1", PinState.PINNED, at, "f"))
    pin = env.db.run(lambda connection: store.get_pin(connection, "p1"))
    assert pin is not None
    assert (pin.status, pin.file_id, pin.updated_at, pin.created_at) == (
        PinState.PINNED,
        "f",
        at,
        NOW + timedelta(seconds=1),
    )
    assert not env.db.run(lambda connection: store.is_file_shared(connection, pin))
    keep(env, 2, status=PinState.PINNED, file_id="f")
    assert env.db.run(lambda connection: store.is_file_shared(connection, pin))
    env.db.run(lambda connection: store.delete_pins_of_file(connection, "f"))
    assert found(env, PinQuery(ALL)) == []


def test_who_waits_longest_is_next(env: StorageEnv) -> None:
    keep(env, 3, status=PinState.BACKFILLED)
    keep(env, 1, status=PinState.SEARCHING)
    keep(env, 2, status=PinState.BACKFILLED)
    oldest = env.db.run(lambda connection: store.get_oldest_pin(connection, env.tenant_id, PinState.BACKFILLED))
    assert oldest is not None
    assert oldest.id == "p2"
    assert env.db.run(lambda connection: store.get_oldest_pin(connection, env.other_id, PinState.BACKFILLED)) is None


def test_failed_pins_are_forgotten(env: StorageEnv) -> None:
    for number, status in enumerate(PinState, 1):
        keep(env, number, status=status, updated_at=NOW)
    keep(env, 100, status=PinState.EXPIRED, updated_at=NOW + timedelta(days=1))
    before = found(env, PinQuery(ALL))
    env.db.run(lambda connection: store.delete_old_failures(connection, env.other_id, NOW + timedelta(days=1)))
    env.db.run(lambda connection: store.delete_old_failures(connection, env.tenant_id, NOW))
    assert found(env, PinQuery(ALL)) == before
    env.db.run(lambda connection: store.delete_old_failures(connection, env.tenant_id, NOW + timedelta(seconds=1)))
    assert found(env, PinQuery(FAILED)) == ["p100"]
    assert len(found(env, PinQuery(ALL))) == len(PinState) - len(FAILED) + 1
