"""Payment instructions: of one tenant, with versions, attached to private CIDs, each to one at most."""

import asyncio
from concurrent.futures import Future
from datetime import timedelta

import pytest

from roost.core import clock
from roost.core.db import Connection, Database
from roost.core.page_cursor import InvalidPageToken
from roost.identity import tenants
from roost.storage.content.model import ContentNetwork
from roost.storage.content.unixfs.cid import Cid
from roost.storage.content.unixfs.errors import InvalidCid
from roost.storage.content.unixfs.profile import V0
from roost.storage.files.model import FileMetadata, FileNotFound
from roost.storage.files.service import FileService, NewFile
from roost.storage.payments.instructions import store
from roost.storage.payments.instructions.model import (
    BUILT_IN,
    CidAlreadyAttached,
    CidAttachment,
    CidNotAttached,
    EmptyPaymentInstructionUpdate,
    InvalidPaymentInstruction,
    PaymentAssets,
    PaymentInstruction,
    PaymentInstructionFilter,
    PaymentInstructionInUse,
    PaymentInstructionNotFound,
    PaymentInstructionUpdate,
    PaymentRequirement,
)
from roost.storage.payments.instructions.service import PaymentInstructionService, find_for_content
from tests.storage.meanwhile import ON_POSTGRESQL, run_concurrently
from tests.storage.storage_env import StorageEnv

PRIVATE, PUBLIC = ContentNetwork.PRIVATE, ContentNetwork.PUBLIC
WALLET = "0x" + "ab" * 20
CENT = PaymentRequirement(BUILT_IN[0].address, WALLET, "base", "10000", "A cent")
OTHERWISE = PaymentRequirement(BUILT_IN[1].address, WALLET, "eip155:84532", "1")


@pytest.fixture
def files(database: Database) -> FileService:
    return FileService(database)


@pytest.fixture
def instructions(database: Database, files: FileService) -> PaymentInstructionService:
    return PaymentInstructionService(database, files, PaymentAssets())


async def attached_instruction(
    instructions: PaymentInstructionService, tenant_id: str, cid: Cid
) -> PaymentInstruction | None:
    return await instructions._db.read(lambda connection: find_for_content(connection, tenant_id, cid))


async def create(
    env: StorageEnv, instructions: PaymentInstructionService, name: str = "articles"
) -> PaymentInstruction:
    return await instructions.create(env.tenant_id, name, [CENT])


async def test_created_changed_and_deleted(env: StorageEnv, instructions: PaymentInstructionService) -> None:
    mine = env.tenant_id
    created = await instructions.create(mine, " articles ", [CENT, OTHERWISE], "All articles")
    assert (created.name, created.version, created.payment_requirements) == ("articles", 1, (CENT, OTHERWISE))
    assert await instructions.get(mine, created.id) == created
    renamed = await instructions.update(mine, created.id, PaymentInstructionUpdate(name="texts"))
    assert (renamed.name, renamed.version, renamed.description) == ("texts", 2, "All articles")
    update = PaymentInstructionUpdate(description="", payment_requirements=[OTHERWISE])
    changed = await instructions.update(mine, created.id, update)
    assert (changed.version, changed.description, changed.payment_requirements) == (3, "", [OTHERWISE])
    assert (await instructions.get(mine, created.id)).payment_requirements == (OTHERWISE,)
    assert changed.updated_at > created.updated_at
    await instructions.delete(mine, created.id)
    for act in (
        instructions.get(mine, created.id),
        instructions.delete(mine, created.id),
        instructions.update(mine, created.id, update),
        instructions.list_cids(mine, created.id, None, 10),
    ):
        with pytest.raises(PaymentInstructionNotFound):
            await act
    assert await instructions.list(mine, PaymentInstructionFilter(), None, 10) == ([], None)


async def test_malformed_instructions_change_nothing(env: StorageEnv, instructions: PaymentInstructionService) -> None:
    mine, created = env.tenant_id, await create(env, instructions)
    for requirements, name in (([], "x"), ([CENT], " "), ([PaymentRequirement("0x", WALLET, "base", "1")], "x")):
        with pytest.raises(InvalidPaymentInstruction):
            await instructions.create(mine, name, requirements)
        update = PaymentInstructionUpdate(name=name, payment_requirements=requirements)
        with pytest.raises(InvalidPaymentInstruction):
            await instructions.update(mine, created.id, update)
    with pytest.raises(EmptyPaymentInstructionUpdate):
        await instructions.update(mine, created.id, PaymentInstructionUpdate())
    assert await instructions.list(mine, PaymentInstructionFilter(), None, 10) == ([created], None)


async def test_another_tenant_has_no_such_instruction(env: StorageEnv, instructions: PaymentInstructionService) -> None:
    created, theirs, file = await create(env, instructions), env.other_id, await env.file(b"one")
    await env.file(b"one", tenant_id=theirs)
    await instructions.attach_cid(env.tenant_id, created.id, file.cid)
    for act in (
        instructions.get(theirs, created.id),
        instructions.update(theirs, created.id, PaymentInstructionUpdate(name="x")),
        instructions.delete(theirs, created.id),
        instructions.list_cids(theirs, created.id, None, 10),
        instructions.attach_cid(theirs, created.id, file.cid),
        instructions.detach_cid(theirs, created.id, file.cid),
    ):
        with pytest.raises(PaymentInstructionNotFound):
            await act
    for wanted in (PaymentInstructionFilter(id=created.id), PaymentInstructionFilter(cid=file.cid)):
        assert await instructions.list(theirs, wanted, None, 10) == ([], None)
    assert await attached_instruction(instructions, theirs, Cid.parse(file.cid)) is None
    assert await attached_instruction(instructions, env.tenant_id, Cid.parse(file.cid)) == created


async def test_pages_and_filters(env: StorageEnv, instructions: PaymentInstructionService) -> None:
    mine = env.tenant_id
    created = [await create(env, instructions, f"i{number}") for number in range(5)]
    first, token = await instructions.list(mine, PaymentInstructionFilter(), None, 3)
    rest, end = await instructions.list(mine, PaymentInstructionFilter(), token, 3)
    assert ([one.name for one in [*first, *rest]], end) == (["i4", "i3", "i2", "i1", "i0"], None)
    file = await env.file(b"one", profile=V0)
    await instructions.attach_cid(mine, created[2].id, file.cid)
    for wanted, found in (
        (PaymentInstructionFilter(name="I3"), [created[3]]),
        (PaymentInstructionFilter(name="%"), []),
        (PaymentInstructionFilter(id=created[1].id), [created[1]]),
        (PaymentInstructionFilter(id=created[1].id, name="i2"), []),
        (PaymentInstructionFilter(cid=file.cid), [created[2]]),
        (PaymentInstructionFilter(cid=str(Cid.parse(file.cid).v1())), [created[2]]),
    ):
        assert await instructions.list(mine, wanted, None, 10) == (found, None)
    with pytest.raises(InvalidCid):
        await instructions.list(mine, PaymentInstructionFilter(cid="x"), None, 10)
    with pytest.raises(InvalidPageToken):
        await instructions.list(mine, PaymentInstructionFilter(), "x", 10)


async def test_attached_and_detached(env: StorageEnv, instructions: PaymentInstructionService) -> None:
    mine, one, two = env.tenant_id, await create(env, instructions), await create(env, instructions)
    file = await env.file(b"one", profile=V0)
    cid = Cid.parse(file.cid)
    attached = await instructions.attach_cid(mine, one.id, str(cid.v1()))
    assert (attached.instruction_id, attached.cid, attached.file_cid) == (one.id, str(cid.v1()), file.cid)
    assert await instructions.attach_cid(mine, one.id, file.cid) == attached
    with pytest.raises(CidAlreadyAttached, match=one.id):
        await instructions.attach_cid(mine, two.id, file.cid)
    for spelling in cid.spellings():
        assert await attached_instruction(instructions, mine, spelling) == one
    with pytest.raises(PaymentInstructionInUse):
        await instructions.delete(mine, one.id)
    assert await instructions.list_cids(mine, one.id, None, 10) == ([attached], None)
    with pytest.raises(CidNotAttached):
        await instructions.detach_cid(mine, two.id, file.cid)
    await instructions.detach_cid(mine, one.id, str(cid.v1()))
    with pytest.raises(CidNotAttached):
        await instructions.detach_cid(mine, one.id, file.cid)
    assert await attached_instruction(instructions, mine, cid) is None
    await instructions.attach_cid(mine, two.id, file.cid)
    await instructions.delete(mine, one.id)


async def test_cids_in_pages(env: StorageEnv, instructions: PaymentInstructionService) -> None:
    created = await create(env, instructions)
    cids = [(await env.file(f"{number}".encode())).cid for number in range(3)]
    for cid in cids:
        await instructions.attach_cid(env.tenant_id, created.id, cid)
    first, token = await instructions.list_cids(env.tenant_id, created.id, None, 2)
    rest, end = await instructions.list_cids(env.tenant_id, created.id, token, 2)
    assert ([one.file_cid for one in [*first, *rest]], end) == (cids[::-1], None)


async def test_only_private_files_of_the_tenant(env: StorageEnv, instructions: PaymentInstructionService) -> None:
    created = await create(env, instructions)
    public, strange = await env.file(b"one", network=PUBLIC), await env.file(b"two", tenant_id=env.other_id)
    for cid in (public.cid, strange.cid, str(Cid.for_block(0x55, b"nowhere"))):
        with pytest.raises(FileNotFound):
            await instructions.attach_cid(env.tenant_id, created.id, cid)
    for act in (instructions.attach_cid, instructions.detach_cid):
        with pytest.raises(InvalidCid):
            await act(env.tenant_id, created.id, "x")


async def test_a_deleted_file_is_detached(
    env: StorageEnv, files: FileService, instructions: PaymentInstructionService
) -> None:
    mine, created = env.tenant_id, await create(env, instructions)
    private, public = await env.file(b"one"), await env.file(b"one", network=PUBLIC)
    theirs = await env.file(b"one", tenant_id=env.other_id)
    await instructions.attach_cid(mine, created.id, private.cid)
    await files.delete(mine, PUBLIC, public.id)
    await files.delete(env.other_id, PRIVATE, theirs.id)
    assert await attached_instruction(instructions, mine, Cid.parse(private.cid)) == created
    await files.delete(mine, PRIVATE, private.id)
    assert await attached_instruction(instructions, mine, Cid.parse(private.cid)) is None
    await env.file(b"one")
    assert await instructions.list_cids(mine, created.id, None, 10) == ([], None)
    await instructions.delete(mine, created.id)


async def test_an_expired_file_is_detached(
    env: StorageEnv, files: FileService, instructions: PaymentInstructionService
) -> None:
    mine, created = env.tenant_id, await create(env, instructions)
    file = await env.file(b"one", FileMetadata(expires_at=clock.utc_now() - timedelta(seconds=1)))
    await instructions.attach_cid(mine, created.id, file.cid)
    assert await files.expire() == 1
    assert await attached_instruction(instructions, mine, Cid.parse(file.cid)) is None
    with pytest.raises(FileNotFound):
        await instructions.attach_cid(mine, created.id, file.cid)


async def test_another_spelling_of_a_deleted_file_stays_attached(
    env: StorageEnv, files: FileService, instructions: PaymentInstructionService
) -> None:
    """Content has two files if it was added under both versions of its CID."""
    mine, created = env.tenant_id, await create(env, instructions)
    old = await env.file(b"one", profile=V0)
    async with env.content.receive(V0) as pack:
        await pack.write(b"one")
        tree = await pack.end_file()
        added = NewFile(mine, PRIVATE, str(tree.cid.v1()), tree.size, "text/plain", FileMetadata())
        new = await pack.commit(lambda connection: files.add(connection, added, pack.pack_id))
    await instructions.attach_cid(mine, created.id, old.cid)
    await files.delete(mine, PRIVATE, old.id)
    assert await attached_instruction(instructions, mine, Cid.parse(old.cid)) == created
    await files.delete(mine, PRIVATE, new.id)
    assert await attached_instruction(instructions, mine, Cid.parse(old.cid)) is None


async def test_of_two_attachments_at_once_one_wins(env: StorageEnv, instructions: PaymentInstructionService) -> None:
    mine, file = env.tenant_id, await env.file(b"one")
    created = [await create(env, instructions) for _ in range(4)]
    results = await asyncio.gather(
        *(instructions.attach_cid(mine, one.id, file.cid) for one in created), return_exceptions=True
    )
    won = [one for one, result in zip(created, results, strict=True) if not isinstance(result, BaseException)]
    assert len(won) == 1
    assert [type(result) for result in results].count(CidAlreadyAttached) == 3
    assert await attached_instruction(instructions, mine, Cid.parse(file.cid)) == won[0]


async def test_updates_at_once_are_all_counted(env: StorageEnv, instructions: PaymentInstructionService) -> None:
    mine, created, file = env.tenant_id, await create(env, instructions), await env.file(b"one")
    updates = [PaymentInstructionUpdate(name=f"n{number}") for number in range(5)]
    changed, attached = await asyncio.gather(
        asyncio.gather(*(instructions.update(mine, created.id, update) for update in updates)),
        instructions.attach_cid(mine, created.id, file.cid),
    )
    assert sorted(one.version for one in changed) == [2, 3, 4, 5, 6]
    assert attached.instruction_id == created.id
    assert (await instructions.get(mine, created.id)).version == 6


@ON_POSTGRESQL
async def test_a_cid_waits_for_the_deletion_of_its_instruction(
    env: StorageEnv, database: Database, instructions: PaymentInstructionService
) -> None:
    mine, created, file = env.tenant_id, await create(env, instructions), await env.file(b"one")
    loop = asyncio.get_running_loop()

    def delete_meanwhile(connection: Connection) -> "Future[CidAttachment]":
        tenants.lock_tenant(connection, mine)
        attaching = run_concurrently(database, loop, instructions.attach_cid(mine, created.id, file.cid))
        connection.exec_driver_sql("UPDATE payment_instructions SET deleted_at = 1")
        return attaching

    attaching = await database.write(delete_meanwhile)
    with pytest.raises(PaymentInstructionNotFound):
        await asyncio.wrap_future(attaching)
    assert await database.read(lambda connection: find_for_content(connection, mine, Cid.parse(file.cid))) is None


@ON_POSTGRESQL
async def test_a_cid_waits_for_the_deletion_of_its_file(
    env: StorageEnv, database: Database, files: FileService, instructions: PaymentInstructionService
) -> None:
    mine, created, file = env.tenant_id, await create(env, instructions), await env.file(b"one")
    loop = asyncio.get_running_loop()

    def delete_meanwhile(connection: Connection) -> "Future[CidAttachment]":
        tenants.lock_tenant(connection, mine)
        attaching = run_concurrently(database, loop, instructions.attach_cid(mine, created.id, file.cid))
        files.remove(connection, file)
        return attaching

    attaching = await database.write(delete_meanwhile)
    with pytest.raises(FileNotFound):
        await asyncio.wrap_future(attaching)
    assert await instructions.list_cids(mine, created.id, None, 10) == ([], None)


@ON_POSTGRESQL
async def test_a_deletion_waits_for_a_cid(
    env: StorageEnv, database: Database, instructions: PaymentInstructionService
) -> None:
    mine, created, file = env.tenant_id, await create(env, instructions), await env.file(b"one")
    loop = asyncio.get_running_loop()

    def attach_meanwhile(connection: Connection) -> "Future[None]":
        tenants.lock_tenant(connection, mine)
        deleting = run_concurrently(database, loop, instructions.delete(mine, created.id))
        attachment = CidAttachment("a", mine, created.id, file.cid, file.cid, clock.utc_now())
        store.insert_attachment(connection, attachment)
        return deleting

    deleting = await database.write(attach_meanwhile)
    with pytest.raises(PaymentInstructionInUse):
        await asyncio.wrap_future(deleting)
    assert await attached_instruction(instructions, mine, Cid.parse(file.cid)) == created
