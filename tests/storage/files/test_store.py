"""The same rows and results on both databases, with any text."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from roost.core.db import Database
from roost.core.page_cursor import PageCursor
from roost.identity import tenants
from roost.storage.content.model import ContentNetwork
from roost.storage.files import store
from roost.storage.files.groups import store as groups
from roost.storage.files.groups.model import Group
from roost.storage.files.model import File, FileFilter, FileMetadata, KeyvalueCondition, PinFilter

NOW = datetime(2026, 11, 21, tzinfo=UTC)
PUBLIC, PRIVATE = ContentNetwork.PUBLIC, ContentNetwork.PRIVATE


@pytest.fixture
def tenant(database: Database) -> str:
    return database.run(lambda connection: tenants.ensure_tenant(connection, "a").id)


@pytest.fixture
def other(database: Database) -> str:
    return database.run(lambda connection: tenants.ensure_tenant(connection, "b").id)


def a_file(tenant: str, place: int, note: FileMetadata | None = None, **more: Any) -> File:
    at = NOW + timedelta(seconds=place)
    made = File(f"f{place}", tenant, PUBLIC, f"cid{place}", 10 * place, 1, "text/plain", note or FileMetadata(), at, at)
    return replace(made, **more)


def keep(database: Database, *files: File) -> None:
    for file in files:
        database.run(lambda connection, file=file: store.insert_file(connection, file))


def found(database: Database, tenant: str, chosen: FileFilter, network: ContentNetwork = PUBLIC) -> list[str]:
    page = database.run(lambda connection: store.list_files(connection, tenant, network, chosen, None, 100))
    count, _ = database.run(lambda connection: store.count_files(connection, tenant, network, chosen))
    assert count == len(page)
    return sorted(file.id for file in page)


def pinned(database: Database, tenant: str, chosen: PinFilter) -> list[str]:
    page, count = database.run(lambda connection: store.list_pins(connection, tenant, chosen, 100, 0))
    assert count == len(page)
    return sorted(file.id for file in page)


def test_a_row_there_and_back(database: Database, tenant: str) -> None:
    note = FileMetadata(
        "\u00fc\u6f22 'n'", {"a": "x", "b": 2, "c": 2.5, "d": True, "e\\": "%_"}, None, NOW + timedelta(days=1)
    )
    file = a_file(tenant, 1, note, size=1 << 50, number_of_files=(1 << 31) - 1)
    keep(database, file)
    assert database.run(lambda connection: store.find_file(connection, tenant, PUBLIC, "f1")) == file
    assert database.run(lambda connection: store.find_by_cid(connection, tenant, PUBLIC, "cid1")) == file


def test_nobody_else_sees_it(database: Database, tenant: str, other: str) -> None:
    keep(database, a_file(tenant, 1))
    for owner, network in ((other, PUBLIC), (tenant, PRIVATE)):
        assert database.run(lambda connection, o=owner, n=network: store.find_file(connection, o, n, "f1")) is None
        assert database.run(lambda connection, o=owner, n=network: store.find_by_cid(connection, o, n, "cid1")) is None
        assert found(database, owner, FileFilter(), network) == []
    assert pinned(database, other, PinFilter()) == []
    assert database.run(lambda connection: store.resolve_file_id(connection, "f1") == "f1")
    assert database.run(lambda connection: store.resolve_file_id(connection, "f2")) is None


def test_a_cid_is_there_once_unless_it_was_deleted(database: Database, tenant: str) -> None:
    keep(database, a_file(tenant, 1))
    with pytest.raises(Exception, match=r"(?i)unique"):
        keep(database, a_file(tenant, 2, cid="cid1"))
    assert database.run(lambda connection: store.mark_deleted(connection, "f1", NOW))
    assert not database.run(lambda connection: store.mark_deleted(connection, "f1", NOW + timedelta(1)))
    keep(database, a_file(tenant, 2, cid="cid1"))
    assert found(database, tenant, FileFilter()) == ["f2"]
    assert database.run(lambda connection: store.resolve_file_id(connection, "f1") == "f1")


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("alpha", ["f1", "f2"]),
        ("ALPHA", ["f1", "f2"]),
        ("100%", ["f2"]),
        ("%", ["f2"]),
        ("_", ["f2"]),
        ("\\", ["f3"]),
        ("\u6f22", ["f3"]),
        ("nothing", []),
    ],
)
def test_a_part_of_a_name(database: Database, tenant: str, name: str, wanted: list[str]) -> None:
    names = ("Alpha.txt", "alpha_100%.txt", "\u6f22\\", None)
    keep(database, *(a_file(tenant, place, FileMetadata(text)) for place, text in enumerate(names, 1)))
    assert found(database, tenant, FileFilter(name=name)) == pinned(database, tenant, PinFilter(name=name)) == wanted


def test_other_filters_select_files(database: Database, tenant: str) -> None:
    group = Group("g", tenant, PUBLIC, "g", False, NOW, NOW)
    database.run(lambda connection: groups.insert_group(connection, group))
    keep(
        database,
        a_file(tenant, 1, FileMetadata(group_id="g")),
        a_file(tenant, 2, mime_type="image/png"),
        a_file(tenant, 3),
    )
    for chosen, wanted in (
        (FileFilter(group_id="g"), ["f1"]),
        (FileFilter(group_id="h"), []),
        (FileFilter(group_id="null"), ["f2", "f3"]),
        (FileFilter(mime_type="image/png"), ["f2"]),
        (FileFilter(mime_type="image/*"), []),
        (FileFilter(cid=["cid3", "another"]), ["f3"]),
        (FileFilter(cid=[]), []),
        (FileFilter(nothing=True), []),
        (FileFilter(group_id="g", mime_type="image/png"), []),
    ):
        assert found(database, tenant, chosen) == wanted


@pytest.mark.parametrize(
    ("pairs", "wanted"),
    [
        ({"kind": "a"}, ["f1", "f2"]),
        ({"kind": "a", "n": 1}, ["f1"]),
        ({"kind": "a", "n": "1"}, ["f1"]),
        ({"kind": "A"}, []),
        ({"Kind": "a"}, []),
        ({"kind": "%"}, []),
        ({"yes": True}, ["f2"]),
        ({"yes": "true"}, ["f2"]),  # as in a URL
        ({"kind": "a", "n": 3}, []),
    ],
)
def test_keyvalues_select_files(database: Database, tenant: str, pairs: dict[str, Any], wanted: list[str]) -> None:
    notes = ({"kind": "a", "n": 1}, {"kind": "a", "n": 2, "yes": True}, {"other": "a"})
    keep(database, *(a_file(tenant, place, FileMetadata(keyvalues=note)) for place, note in enumerate(notes, 1)))
    assert found(database, tenant, FileFilter(keyvalues=pairs)) == wanted


def test_another_note_replaces_all_keyvalues(database: Database, tenant: str) -> None:
    keep(database, a_file(tenant, 1, FileMetadata("old", {"a": "1", "b": "2"})))
    at = NOW + timedelta(hours=1)
    database.run(lambda connection: store.set_metadata(connection, "f1", FileMetadata("new", {"b": "3"}), at))
    assert found(database, tenant, FileFilter(keyvalues={"b": "3"})) == ["f1"]
    assert found(database, tenant, FileFilter(keyvalues={"a": "1"})) == []
    file = database.run(lambda connection: store.find_file(connection, tenant, PUBLIC, "f1"))
    assert file is not None
    assert (file.metadata, file.updated_at, file.created_at) == (
        FileMetadata("new", {"b": "3"}),
        at,
        NOW + timedelta(seconds=1),
    )


def walked(database: Database, tenant: str, limit: int, *, ascending: bool) -> Sequence[str]:
    seen: list[str] = []
    after: PageCursor | None = None
    while True:
        page = database.run(
            lambda connection, after=after: store.list_files(
                connection, tenant, PUBLIC, FileFilter(ascending=ascending), after, limit
            )
        )
        if not page:
            return seen
        seen += [file.id for file in page]
        after = PageCursor(page[-1].created_at, page[-1].id)


@pytest.mark.parametrize("ascending", [True, False])
@pytest.mark.parametrize("limit", [1, 2, 100])
def test_pages_are_whole_when_many_came_at_the_same_moment(
    database: Database, tenant: str, limit: int, ascending: bool
) -> None:
    keep(database, *(a_file(tenant, place, created_at=NOW) for place in range(1, 6)), a_file(tenant, 6))
    wanted = [f"f{place}" for place in range(1, 7)]
    assert walked(database, tenant, limit, ascending=ascending) == (wanted if ascending else wanted[::-1])


@pytest.mark.parametrize(
    ("chosen", "wanted"),
    [
        (PinFilter(), ["f1", "f2", "f3"]),
        (PinFilter(status="pinned"), ["f1", "f2"]),
        (PinFilter(status="unpinned"), ["f3"]),
        (PinFilter(size=(20, None)), ["f2", "f3"]),
        (PinFilter(size=(10, 20)), ["f1", "f2"]),
        (PinFilter(size=(11, 19)), []),
        (PinFilter(pinned=(NOW + timedelta(seconds=2), None)), ["f2", "f3"]),
        (PinFilter(pinned=(None, NOW + timedelta(seconds=2))), ["f1", "f2"]),
        (PinFilter(unpinned=(NOW, None)), ["f3"]),
        (PinFilter(unpinned=(None, NOW - timedelta(seconds=1))), []),
        (PinFilter(hash_contains="id2"), ["f2"]),
        (PinFilter(hash_contains="ID2"), []),
        (PinFilter(hash_contains="%"), []),
        (PinFilter(cid=["cid1", "cid3"]), ["f1", "f3"]),
    ],
)
def test_the_older_list(database: Database, tenant: str, chosen: PinFilter, wanted: list[str]) -> None:
    keep(database, *(a_file(tenant, place) for place in (1, 2, 3)), a_file(tenant, 4, network=PRIVATE))
    database.run(lambda connection: store.mark_deleted(connection, "f3", NOW))
    assert pinned(database, tenant, chosen) == wanted


@pytest.mark.parametrize(
    ("operator", "value", "wanted"),
    [
        ("eq", "alpha", ["f1"]),
        ("like", "al%", ["f1"]),
        ("like", "AL%", ["f2"]),
        ("like", "a_pha", ["f1"]),
        ("like", "", []),
        ("ilike", "AL%", ["f1", "f2"]),
        ("like", "%\\", ["f4"]),  # a pattern that ends in PostgreSQL's escape character
        ("ilike", "%\\", ["f4"]),
        ("like", "%\\%", ["f4"]),
        ("like", "100%", ["f3"]),
    ],
)
def test_conditions_on_keyvalues(database: Database, tenant: str, operator: str, value: str, wanted: list[str]) -> None:
    texts = ("alpha", "ALPINE", "100%", "back\\")
    keep(database, *(a_file(tenant, place, FileMetadata(keyvalues={"k": text})) for place, text in enumerate(texts, 1)))
    assert pinned(database, tenant, PinFilter(conditions=[KeyvalueCondition("k", operator, value)])) == wanted
    unlike = KeyvalueCondition("k", operator, value, negated=True)
    assert pinned(database, tenant, PinFilter(conditions=[unlike])) == sorted({"f1", "f2", "f3", "f4"} - set(wanted))
    assert pinned(database, tenant, PinFilter(conditions=[KeyvalueCondition("other", operator, value)])) == []


def test_slices_of_the_older_list(database: Database, tenant: str) -> None:
    keep(database, *(a_file(tenant, place) for place in range(1, 6)))

    def part(limit: int, offset: int) -> list[str]:
        page, count = database.run(lambda connection: store.list_pins(connection, tenant, PinFilter(), limit, offset))
        assert count == 5
        return [file.id for file in page]

    assert part(2, 0) == ["f5", "f4"]
    assert part(2, 4) == ["f1"]
    assert part(2, 9) == []


def test_bytes_are_summed(database: Database, tenant: str, other: str) -> None:
    keep(database, a_file(tenant, 1, size=1 << 61), a_file(tenant, 2, size=1 << 61), a_file(other, 3))
    assert database.run(lambda connection: store.count_files(connection, tenant, PUBLIC, FileFilter())) == (2, 1 << 62)
    assert database.run(lambda connection: store.count_files(connection, tenant, PRIVATE, FileFilter())) == (0, 0)


def test_expired_files_are_listed(database: Database, tenant: str) -> None:
    ends = (NOW, NOW + timedelta(microseconds=1), None, NOW - timedelta(days=1))
    keep(database, *(a_file(tenant, place, FileMetadata(expires_at=end)) for place, end in enumerate(ends, 1)))
    over = database.run(lambda connection: store.list_expired(connection, NOW, 10))
    assert sorted(file.id for file in over) == ["f1", "f4"]
    assert len(database.run(lambda connection: store.list_expired(connection, NOW, 1))) == 1
    database.run(lambda connection: store.mark_deleted(connection, "f4", NOW))
    assert [file.id for file in database.run(lambda connection: store.list_expired(connection, NOW, 10))] == ["f1"]
