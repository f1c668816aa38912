"""Groups as rows, alike on both databases."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from roost.core.page_cursor import PageCursor
from roost.storage.content.model import ContentNetwork
from roost.storage.files import store as files
from roost.storage.files.model import File, FileMetadata
from roost.storage.groups import store
from roost.storage.groups.model import Group, GroupFilter
from tests.storage.house import House

NOW = datetime(2026, 11, 21, tzinfo=UTC)
PUBLIC, PRIVATE = ContentNetwork.PUBLIC, ContentNetwork.PRIVATE


def keep(
    place: House, number: int, name: str = "n", network: ContentNetwork = PUBLIC, *, is_public: bool = False
) -> Group:
    at = NOW + timedelta(seconds=number)
    group = Group(f"g{number}", place.tenant_id, network, name, is_public, at, at)
    place.db.run(lambda connection: store.add(connection, group))
    return group


def found(place: House, chosen: GroupFilter, after: PageCursor | None = None) -> list[str]:
    page = place.db.run(lambda connection: store.page(connection, place.tenant_id, PUBLIC, chosen, after, 100))
    return [group.id for group in page]


def test_a_row_there_and_back(place: House) -> None:
    group = keep(place, 1, "\u00fc\u6f22 '%_\\", is_public=True)
    assert place.db.run(lambda connection: store.get(connection, place.tenant_id, PUBLIC, "g1")) == group
    for tenant, network in ((place.other_id, PUBLIC), (place.tenant_id, PRIVATE)):
        assert place.db.run(lambda connection, t=tenant, n=network: store.get(connection, t, n, "g1")) is None


@pytest.mark.parametrize(
    ("chosen", "wanted"),
    [
        (GroupFilter(), ["g4", "g3", "g2", "g1"]),
        (GroupFilter("photo"), ["g2", "g1"]),
        (GroupFilter("PHOTO"), ["g2", "g1"]),
        (GroupFilter("%"), ["g3"]),
        (GroupFilter("_"), ["g3"]),
        (GroupFilter("\\"), ["g4"]),
        (GroupFilter("x"), []),
        (GroupFilter(is_public=True), ["g1"]),
        (GroupFilter(is_public=False), ["g4", "g3", "g2"]),
        (GroupFilter("photo", is_public=False), ["g2"]),
    ],
)
def test_filters(place: House, chosen: GroupFilter, wanted: list[str]) -> None:
    for number, name in enumerate(("Photos", "my photos", "100%_", "a\\b"), 1):
        keep(place, number, name, is_public=number == 1)
    keep(place, 5, "photos", PRIVATE)
    assert found(place, chosen) == wanted
    part = place.db.run(lambda connection: store.slice_of(connection, place.tenant_id, PUBLIC, chosen, 2, 1))
    assert [group.id for group in part] == wanted[1:3]


def test_pages_of_groups_that_came_at_one_moment(place: House) -> None:
    for number in range(1, 5):
        group = replace(keep(place, number + 10), id=f"g{number}", created_at=NOW)
        place.db.run(lambda connection, group=group: store.add(connection, group))
    assert found(place, GroupFilter(), PageCursor(NOW, "g3")) == ["g2", "g1"]
    assert found(place, GroupFilter(), PageCursor(NOW, "g1")) == []


def test_another_name(place: House) -> None:
    group, other = keep(place, 1), keep(place, 2)
    at = NOW + timedelta(hours=1)
    place.db.run(lambda connection: store.update(connection, "g1", "m", at, is_public=True))
    changed = replace(group, name="m", is_public=True, updated_at=at)
    assert place.db.run(lambda connection: store.get(connection, place.tenant_id, PUBLIC, "g1")) == changed
    assert place.db.run(lambda connection: store.get(connection, place.tenant_id, PUBLIC, "g2")) == other


def test_files_stay_in_no_group(place: House) -> None:
    keep(place, 1)
    file = File("f", place.tenant_id, PUBLIC, "cid", 1, 1, "text/plain", FileMetadata(group_id="g1"), NOW, NOW)
    place.db.run(lambda connection: files.insert_file(connection, file))
    place.db.run(lambda connection: store.remove(connection, "g1"))
    left = place.db.run(lambda connection: files.find_file(connection, place.tenant_id, PUBLIC, "f"))
    assert left is not None
    assert left.note.group_id is None
    assert place.db.run(lambda connection: store.get(connection, place.tenant_id, PUBLIC, "g1")) is None
