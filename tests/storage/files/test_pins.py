"""Filters of the older list, the same on both databases, with texts among the numbers."""

import pytest

from roost.core.db import Database
from roost.storage.content.model import ContentNetwork
from roost.storage.content.unixfs.profile import V1
from roost.storage.files.model import File, FileMetadata, KeyvalueCondition, PinFilter
from roost.storage.files.service import FileService, NewFile
from tests.storage.storage_env import StorageEnv

PUBLIC = ContentNetwork.PUBLIC
VALUES = (9, 10.5, -3, 1e-7, "11", "1e2", "1e999", "nan", "inf", "٣", "9\n", "", "Apple", "apple", "50%", "5_0", 10**40)


@pytest.fixture
def files(database: Database) -> FileService:
    return FileService(database)


async def add(env: StorageEnv, files: FileService, note: FileMetadata, tenant_id: str | None = None) -> File:
    async with env.content.receive(V1) as pack:
        await pack.write(repr(note).encode())
        tree = await pack.end_file()
        arrival = NewFile(tenant_id or env.tenant_id, PUBLIC, str(tree.cid), tree.size, "text/plain", note)
        return await pack.commit(lambda connection: files.add(connection, arrival, pack.pack_id))


async def test_conditions_select_by_value(env: StorageEnv, files: FileService) -> None:
    for value in VALUES:
        await add(env, files, FileMetadata(repr(value), {"n": value, "other": 9}))
    await add(env, files, FileMetadata("none"))
    await add(env, files, FileMetadata("theirs", {"n": 9}), env.other_id)
    numbers = {"9", "10.5", "-3", "1e-07", "'11'", "'1e2'"}
    texts = {repr(value) for value in VALUES}

    async def found(operator: str, value: str | float, until: str | float | None = None, *, negated: bool) -> set[str]:
        condition = KeyvalueCondition("n", operator, value, until, negated)
        pins, count = await files.list_pins(env.tenant_id, PinFilter(conditions=[condition]), 100, 0)
        assert count == len(pins)
        return {str(pin.metadata.name) for pin in pins}

    for operator, value, until, wanted, whole in (
        ("gt", 9.0, None, {"10.5", "'11'", "'1e2'"}, numbers),
        ("gte", 9.0, None, {"9", "10.5", "'11'", "'1e2'"}, numbers),
        ("lt", 9.0, None, {"-3", "1e-07"}, numbers),
        ("lte", 9.0, None, {"9", "-3", "1e-07"}, numbers),
        ("between", -3.0, 9.0, {"9", "-3", "1e-07"}, numbers),
        ("eq", "9", None, {"9"}, texts),
        ("like", "%pple", None, {"'Apple'", "'apple'"}, texts),
        ("like", "a%", None, {"'apple'"}, texts),
        ("ilike", "a%", None, {"'Apple'", "'apple'"}, texts),
        ("like", "5__", None, {"'50%'", "'5_0'"}, texts),
    ):
        assert await found(operator, value, until, negated=False) == wanted, (operator, value)
        assert await found(operator, value, until, negated=True) == whole - wanted, (operator, value)


async def test_part_of_a_cid_is_found_as_it_is_written(env: StorageEnv, files: FileService) -> None:
    file = await add(env, files, FileMetadata("one"))
    for part, wanted in ((file.cid[10:20], 1), (file.cid[10:20].upper(), 0), ("%", 0)):
        assert (await files.list_pins(env.tenant_id, PinFilter(hash_contains=part), 10, 0))[1] == wanted
