"""Which files are hurt where content is damaged."""

from collections.abc import AsyncGenerator, Sequence

from sqlalchemy import Connection

from roost.core.db import Database
from roost.storage.content import service as content
from roost.storage.files import store
from roost.storage.files.model import File, holder_of

_AT_ONCE = 500


async def damaged(db: Database) -> AsyncGenerator[File]:
    """Every file, of all tenants, whose content is known to be damaged."""
    after = ""
    while holders := await db.read(
        lambda connection, after=after: content.holders_of_damaged(connection, after, _AT_ONCE)
    ):
        after = holders[-1]
        for file in await db.read(lambda connection, holders=holders: store.holding(connection, holders)):
            yield file


def is_damaged(connection: Connection, file: File) -> bool:
    """Whether its content is known to be damaged."""
    return content.is_damaged(connection, holder_of(file.id))


def describe(connection: Connection, holders: Sequence[str]) -> Sequence[str]:
    """Holders of content in words for an operator."""
    files = {holder_of(file.id): file for file in store.holding(connection, holders)}
    return [_described(files[holder]) if holder in files else holder for holder in holders]


def _described(file: File) -> str:
    return f"file {file.id} {file.note.name!r} {file.cid} ({file.network}) of tenant {file.tenant_id}"
