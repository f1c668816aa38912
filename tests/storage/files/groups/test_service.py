"""Groups: of one tenant on one network, listed in pages; their files outlive them."""

import pytest

from roost.core.db import Database
from roost.core.page_cursor import InvalidPageToken
from roost.storage.content.model import ContentNetwork
from roost.storage.content.unixfs.cid import Cid
from roost.storage.content.unixfs.profile import V1
from roost.storage.files.groups.model import GroupFilter, GroupNotFound, InvalidGroup
from roost.storage.files.groups.service import GroupService
from roost.storage.files.model import FileFilter, FileMetadata, FileNotFound
from roost.storage.files.service import FileService, NewFile
from tests.storage.storage_env import StorageEnv

PRIVATE, PUBLIC = ContentNetwork.PRIVATE, ContentNetwork.PUBLIC


@pytest.fixture
def groups(database: Database) -> GroupService:
    return GroupService(database, FileService(database))


async def test_made_changed_and_deleted(env: StorageEnv, groups: GroupService) -> None:
    mine = env.tenant_id
    made = await groups.create(mine, PRIVATE, " photos ", is_public=False)
    assert made.name == "photos"
    assert await groups.get(mine, PRIVATE, made.id) == made
    renamed = await groups.update(mine, PRIVATE, made.id, "pictures", is_public=None)
    opened = await groups.update(mine, PRIVATE, made.id, None, is_public=True)
    assert (renamed.name, renamed.is_public, opened.name, opened.is_public) == ("pictures", False, "pictures", True)
    assert await groups.get(mine, PRIVATE, made.id) == opened
    await groups.delete(mine, PRIVATE, made.id)
    with pytest.raises(GroupNotFound):
        await groups.get(mine, PRIVATE, made.id)


@pytest.mark.parametrize("name", ["", "   ", "x" * 101])
async def test_names_that_are_none(env: StorageEnv, groups: GroupService, name: str) -> None:
    with pytest.raises(InvalidGroup):
        await groups.create(env.tenant_id, PRIVATE, name, is_public=False)


async def test_another_tenant_or_network_has_no_such_group(env: StorageEnv, groups: GroupService) -> None:
    made = await groups.create(env.tenant_id, PRIVATE, "photos", is_public=True)
    for tenant, network in ((env.other_id, PRIVATE), (env.tenant_id, PUBLIC)):
        for act in (
            groups.get(tenant, network, made.id),
            groups.update(tenant, network, made.id, "x", is_public=None),
            groups.delete(tenant, network, made.id),
        ):
            with pytest.raises(GroupNotFound):
                await act
        assert await groups.list(tenant, network, GroupFilter(), None, 10) == ([], None)
    assert await groups.get(env.tenant_id, PRIVATE, made.id) == made


async def test_pages_and_filters(env: StorageEnv, groups: GroupService) -> None:
    mine = env.tenant_id
    made = [await groups.create(mine, PUBLIC, f"g{n}", is_public=n % 2 == 0) for n in range(5)]
    first, token = await groups.list(mine, PUBLIC, GroupFilter(), None, 3)
    rest, end = await groups.list(mine, PUBLIC, GroupFilter(), token, 3)
    assert [one.name for one in [*first, *rest]] == ["g4", "g3", "g2", "g1", "g0"]
    assert end is None
    open_ones, _ = await groups.list(mine, PUBLIC, GroupFilter(is_public=True), None, 10)
    assert {one.id for one in open_ones} == {made[0].id, made[2].id, made[4].id}
    named, _ = await groups.list(mine, PUBLIC, GroupFilter(name="G3"), None, 10)
    assert named == [made[3]]
    assert await groups.list(mine, PUBLIC, GroupFilter(name="%"), None, 10) == ([], None)
    for none in (0, -1):
        assert len((await groups.list(mine, PUBLIC, GroupFilter(), None, none))[0]) == 1
    with pytest.raises(InvalidPageToken):
        await groups.list(mine, PUBLIC, GroupFilter(), "x", 10)


async def test_files_outlive_their_group(env: StorageEnv, database: Database, groups: GroupService) -> None:
    files = FileService(database)
    async with env.content.receive(V1) as pack:
        await pack.write(b"one")
        tree = await pack.end_file()
        arrival = NewFile(env.tenant_id, PRIVATE, str(tree.cid), tree.size, "text/plain", FileMetadata("n"))
        file = await pack.commit(lambda connection: files.add(connection, arrival, pack.pack_id))
    made = await groups.create(env.tenant_id, PRIVATE, "photos", is_public=False)
    await groups.add_files(env.tenant_id, PRIVATE, made.id, [file.id])
    assert (await files.get(env.tenant_id, PRIVATE, file.id)).metadata.group_id == made.id
    await groups.delete(env.tenant_id, PRIVATE, made.id)
    assert (await files.get(env.tenant_id, PRIVATE, file.id)).metadata.group_id is None


async def test_files_are_moved_together_or_not_at_all(
    env: StorageEnv, database: Database, groups: GroupService
) -> None:
    files = FileService(database)
    group = await groups.create(env.tenant_id, PUBLIC, "some", is_public=False)
    theirs = await groups.create(env.other_id, PUBLIC, "theirs", is_public=False)
    one, two = [await env.file(name, network=PUBLIC) for name in (b"one", b"two")]
    strange = await env.file(b"strange", network=PUBLIC, tenant_id=env.other_id)
    mine = env.tenant_id, PUBLIC

    async def members() -> set[str]:
        page, _ = await files.list(*mine, FileFilter(group_id=group.id), None, 10)
        return {file.id for file in page}

    with pytest.raises(FileNotFound):
        await groups.add_files(*mine, group.id, [one.id, strange.id])
    with pytest.raises(FileNotFound):
        await groups.add_files(*mine, group.id, [Cid.parse(one.cid), Cid.parse(strange.cid)])
    with pytest.raises(GroupNotFound):
        await groups.add_files(*mine, theirs.id, [one.id])
    assert await members() == set()
    await groups.add_files(*mine, group.id, [Cid.parse(one.cid), two.id, Cid.parse(one.cid)])
    assert await members() == {one.id, two.id}
    await groups.remove_files(*mine, group.id, [one.id])
    with pytest.raises(FileNotFound):
        await groups.remove_files(*mine, group.id, [two.id, one.id])
    assert await members() == {two.id}


async def test_groups_are_listed_by_offset(env: StorageEnv, groups: GroupService) -> None:
    for name in ("a", "B", "ab"):
        await groups.create(env.tenant_id, PUBLIC, name, is_public=False)
    await groups.create(env.other_id, PUBLIC, "ab", is_public=False)

    async def names(chosen: GroupFilter, limit: int, offset: int) -> list[str]:
        return [group.name for group in await groups.list_slice(env.tenant_id, PUBLIC, chosen, limit, offset)]

    assert await names(GroupFilter(), 10, 0) == ["ab", "B", "a"]
    assert await names(GroupFilter(), 1, 1) == ["B"]
    assert await names(GroupFilter("b"), 10, 0) == ["ab", "B"]
    assert await names(GroupFilter(), 10, 3) == []
