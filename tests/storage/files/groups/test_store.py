"""Groups as rows, alike on both databases."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from roost.core.page_cursor import PageCursor
from roost.storage.content.model import ContentNetwork
from roost.storage.files import store as files
from roost.storage.files.groups import store
from roost.storage.files.groups.model import Group, GroupFilter
from roost.storage.files.model import File, FileMetadata
from tests.storage.storage_env import StorageEnv

NOW = datetime(2026, 11, 21, tzinfo=UTC)
PUBLIC, PRIVATE = ContentNetwork.PUBLIC, ContentNetwork.PRIVATE


def keep(
    env: StorageEnv, number: int, name: str = "n", network: ContentNetwork = PUBLIC, *, is_public: bool = False
) -> Group:
    at = NOW + timedelta(seconds=number)
    group = Group(f"g{number}", env.tenant_id, network, name, is_public, at, at)
    env.db.run(lambda connection: store.insert_group(connection, group))
    return group


def found(env: StorageEnv, chosen: GroupFilter, after: PageCursor | None = None) -> list[str]:
    page = env.db.run(lambda connection: store.list_groups(connection, env.tenant_id, PUBLIC, chosen, after, 100))
    return [group.id for group in page]


def test_a_row_there_and_back(env: StorageEnv) -> None:
    group = keep(env, 1, "\u00fc\u6f22 '%_\\", is_public=True)
    assert env.db.run(lambda connection: store.find_group(connection, env.tenant_id, PUBLIC, "g1")) == group
    for tenant, network in ((env.other_id, PUBLIC), (env.tenant_id, PRIVATE)):
        assert env.db.run(lambda connection, t=tenant, n=network: store.find_group(connection, t, n, "g1")) is None


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
def test_filters_select_groups(env: StorageEnv, chosen: GroupFilter, wanted: list[str]) -> None:
    for number, name in enumerate(("Photos", "my photos", "100%_", "a\\b"), 1):
        keep(env, number, name, is_public=number == 1)
    keep(env, 5, "photos", PRIVATE)
    assert found(env, chosen) == wanted
    part = env.db.run(lambda connection: store.list_groups(connection, env.tenant_id, PUBLIC, chosen, None, 2, 1))
    assert [group.id for group in part] == wanted[1:3]


def test_pages_of_groups_that_came_at_one_moment(env: StorageEnv) -> None:
    for number in range(1, 5):
        group = replace(keep(env, number + 10), id=f"g{number}", created_at=NOW)
        env.db.run(lambda connection, group=group: store.insert_group(connection, group))
    assert found(env, GroupFilter(), PageCursor(NOW, "g3")) == ["g2", "g1"]
    assert found(env, GroupFilter(), PageCursor(NOW, "g1")) == []


def test_renamed_group_is_found_and_others_stay(env: StorageEnv) -> None:
    group, other = keep(env, 1), keep(env, 2)
    at = NOW + timedelta(hours=1)
    changed = replace(group, name="m", is_public=True, updated_at=at)
    env.db.run(lambda connection: store.update_group(connection, changed))
    assert env.db.run(lambda connection: store.find_group(connection, env.tenant_id, PUBLIC, "g1")) == changed
    assert env.db.run(lambda connection: store.find_group(connection, env.tenant_id, PUBLIC, "g2")) == other


def test_files_stay_in_no_group(env: StorageEnv) -> None:
    keep(env, 1)
    file = File("f", env.tenant_id, PUBLIC, "cid", 1, 1, "text/plain", FileMetadata(group_id="g1"), NOW, NOW)
    env.db.run(lambda connection: files.insert_file(connection, file))
    env.db.run(lambda connection: store.delete_group(connection, "g1"))
    left = env.db.run(lambda connection: files.find_file(connection, env.tenant_id, PUBLIC, "f"))
    assert left is not None
    assert left.metadata.group_id is None
    assert env.db.run(lambda connection: store.find_group(connection, env.tenant_id, PUBLIC, "g1")) is None
