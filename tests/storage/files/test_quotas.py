"""Usage is counted to the byte; concurrent uploads never exceed the plan."""

import asyncio

import pytest

from roost.core.db import Database
from roost.identity import tenants
from roost.identity.caller import Plan
from roost.storage.content import service as content
from roost.storage.content.model import ContentNetwork
from roost.storage.content.unixfs.profile import V1
from roost.storage.files.model import File, FileFilter, FileMetadata, StorageQuotaExceeded
from roost.storage.files.service import FileService, NewFile
from tests.storage.storage_env import StorageEnv

PRIVATE, PUBLIC = ContentNetwork.PRIVATE, ContentNetwork.PUBLIC


@pytest.fixture
def files(database: Database) -> FileService:
    return FileService(database, {Plan.FREE: 1000, Plan.PAID: None})


async def add(env: StorageEnv, files: FileService, data: bytes, network: ContentNetwork = PRIVATE) -> File:
    async with env.content.receive(V1) as pack:
        await pack.write(data)
        tree = await pack.end_file()
        arrival = NewFile(env.tenant_id, network, str(tree.cid), tree.size, "text/plain", FileMetadata("n"))
        return await pack.commit(lambda connection: files.add(connection, arrival, pack.pack_id))


async def kept(env: StorageEnv, files: FileService) -> int:
    size, most = await files.quota.usage(env.tenant_id)
    assert most == 1000
    return size


async def test_bytes_are_counted_when_they_come_and_go(env: StorageEnv, files: FileService) -> None:
    assert await kept(env, files) == 0
    one = await add(env, files, b"1" * 300)
    await add(env, files, b"2" * 300)
    assert await kept(env, files) == 600
    assert (await add(env, files, b"1" * 300)).is_duplicate
    assert await kept(env, files) == 600
    both = await add(env, files, b"1" * 300, PUBLIC)
    assert await kept(env, files) == 900
    for network, file in ((PRIVATE, one), (PUBLIC, both)):
        await files.delete(env.tenant_id, network, file.id)
    assert await kept(env, files) == 300


async def test_uploads_up_to_the_limit_and_not_a_byte_more(env: StorageEnv, files: FileService) -> None:
    await add(env, files, b"1" * 999)
    await add(env, files, b"2")
    with pytest.raises(StorageQuotaExceeded):
        await add(env, files, b"3")
    assert await kept(env, files) == 1000
    assert (await add(env, files, b"2")).is_duplicate
    await add(env, files, b"")
    found, _ = await files.list(env.tenant_id, PRIVATE, FileFilter(), None, 10)
    assert len(found) == 3


async def test_many_at_once_do_not_get_past_it(env: StorageEnv, files: FileService) -> None:
    coming = [add(env, files, bytes((number,)) * 200) for number in range(12)]
    done = await asyncio.gather(*coming, return_exceptions=True)
    assert sum(isinstance(one, File) for one in done) == 5
    assert sum(isinstance(one, StorageQuotaExceeded) for one in done) == 7
    assert await kept(env, files) == 1000
    await env.content.sweep()
    found, _ = await files.list(env.tenant_id, PRIVATE, FileFilter(), None, 100)
    leaving = [files.delete(env.tenant_id, PRIVATE, one.id) for one in (*found, *found)]
    await asyncio.gather(*leaving, return_exceptions=True)
    assert await kept(env, files) == 0


async def test_a_paid_plan_may_have_any_number(env: StorageEnv, files: FileService) -> None:
    await env.db.write(lambda connection: tenants.ensure_tenant(connection, "a", Plan.PAID))
    await add(env, files, b"1" * 5000)
    assert await files.quota.usage(env.tenant_id) == (5000, None)
    await env.db.write(lambda connection: tenants.ensure_tenant(connection, "a", Plan.FREE))
    with pytest.raises(StorageQuotaExceeded):
        await add(env, files, b"2")


async def test_tenants_are_counted_apart(env: StorageEnv, files: FileService) -> None:
    await add(env, files, b"1" * 1000)
    assert await env.db.read(lambda connection: content.stored_bytes(connection, env.other_id)) == 0
