"""A file has one signature, by any wallet, as long as the file exists."""

import asyncio
from dataclasses import replace

import pytest

from roost.core import clock
from roost.core.db import Database
from roost.storage.content.model import ContentNetwork
from roost.storage.content.unixfs.cid import Cid
from roost.storage.content.unixfs.errors import InvalidCid
from roost.storage.content.unixfs.profile import V0
from roost.storage.files.model import FileNotFound
from roost.storage.files.service import FileService
from roost.storage.files.signatures.model import (
    InvalidSignature,
    SignatureExists,
    SignatureMissing,
    format_milliseconds,
)
from roost.storage.files.signatures.service import SignatureService
from tests.storage.files.signatures.test_ethereum import account, sign_typed
from tests.storage.storage_env import StorageEnv
from tests.support.wallet import encode_defunct

PRIVATE = ContentNetwork.PRIVATE
ME = account().address


@pytest.fixture
def signatures(database: Database) -> SignatureService:
    return SignatureService(database)


async def test_added_read_and_taken_away(env: StorageEnv, signatures: SignatureService) -> None:
    file, mine = await env.file(b"one"), env.tenant_id
    signature = sign_typed(account(), file.cid, format_milliseconds(file.created_at))
    made = await signatures.add(mine, PRIVATE, file.cid, signature, ME.lower())
    assert (made.cid, made.signature, made.address) == (file.cid, signature, ME)
    assert await signatures.get(mine, PRIVATE, file.cid) == made
    with pytest.raises(SignatureExists):
        await signatures.add(mine, PRIVATE, file.cid, signature, ME)
    await signatures.delete(mine, PRIVATE, file.cid)
    assert await signatures.find(mine, PRIVATE, Cid.parse(file.cid)) is None
    for act in (signatures.get, signatures.delete):
        with pytest.raises(SignatureMissing):
            await act(mine, PRIVATE, file.cid)


async def test_accepted_messages_have_either_date_cid_or_text(env: StorageEnv, signatures: SignatureService) -> None:
    """Either date format of ours, either spelling of the CID, or the CID as plain text."""
    file, mine = await env.file(b"one", profile=V0), env.tenant_id
    other = str(Cid.parse(file.cid).v1())
    assert other != file.cid
    for said in (
        sign_typed(account(), file.cid, format_milliseconds(file.created_at)),
        sign_typed(account(), other, clock.format_iso(file.created_at)),
        "0x" + account().sign_message(encode_defunct(text=file.cid)).signature.hex(),
    ):
        for spelling in (file.cid, other):
            await signatures.add(mine, PRIVATE, spelling, said, ME)
            await signatures.delete(mine, PRIVATE, spelling)


async def test_other_messages_are_refused(env: StorageEnv, signatures: SignatureService) -> None:
    file, mine = await env.file(b"one"), env.tenant_id
    date = format_milliseconds(file.created_at)
    for said, who in (
        (sign_typed(account(2), file.cid, date), ME),
        (sign_typed(account(), file.cid, date), account(2).address),
        (sign_typed(account(), file.cid, "2020-01-01T00:00:00.000Z"), ME),
        (sign_typed(account(), "another", date), ME),
    ):
        with pytest.raises(InvalidSignature):
            await signatures.add(mine, PRIVATE, file.cid, said, who)
    with pytest.raises(SignatureMissing):
        await signatures.get(mine, PRIVATE, file.cid)


async def test_who_does_not_have_it_there(env: StorageEnv, signatures: SignatureService) -> None:
    file = await env.file(b"one")
    said = sign_typed(account(), file.cid, format_milliseconds(file.created_at))
    for tenant, network in ((env.other_id, PRIVATE), (env.tenant_id, ContentNetwork.PUBLIC)):
        with pytest.raises(FileNotFound):
            await signatures.add(tenant, network, file.cid, said, ME)
        with pytest.raises(FileNotFound):
            await signatures.get(tenant, network, file.cid)
    with pytest.raises(InvalidCid):
        await signatures.add(env.tenant_id, PRIVATE, "x", said, ME)


async def test_of_many_at_once_one_stays(env: StorageEnv, signatures: SignatureService) -> None:
    file = await env.file(b"one")
    date = format_milliseconds(file.created_at)
    tries = [
        signatures.add(env.tenant_id, PRIVATE, file.cid, sign_typed(account(n), file.cid, date), account(n).address)
        for n in range(1, 6)
    ]
    made = await asyncio.gather(*tries, return_exceptions=True)
    assert sum(isinstance(one, SignatureExists) for one in made) == 4


async def test_it_goes_with_the_file(env: StorageEnv, database: Database, signatures: SignatureService) -> None:
    file, mine = await env.file(b"one"), env.tenant_id
    said = sign_typed(account(), file.cid, format_milliseconds(file.created_at))
    await signatures.add(mine, PRIVATE, file.cid, said, ME)
    await FileService(database).delete(mine, PRIVATE, file.id)
    again = await env.file(b"one")
    assert replace(again, id=file.id, created_at=file.created_at, updated_at=file.updated_at) == file
    assert await signatures.find(mine, PRIVATE, Cid.parse(file.cid)) is None
    with pytest.raises(InvalidSignature):
        await signatures.add(mine, PRIVATE, file.cid, said, ME)
