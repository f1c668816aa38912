"""Files whose content is damaged."""

from collections.abc import AsyncGenerator, Sequence

from sqlalchemy import Connection

from roost.core.db import Database
from roost.storage.content import service as content
from roost.storage.files import store
from roost.storage.files.model import File, holder_of

_BATCH_SIZE = 500


async def damaged_content(db: Database) -> AsyncGenerator[File | str]:
    """Yield what holds content that is known to be damaged: files of all tenants, and names of other holders."""
    after = ""
    while holders := await db.read(
        lambda connection, after=after: content.holders_of_damaged(connection, after, _BATCH_SIZE)
    ):
        after = holders[-1]
        found = await db.read(lambda connection, holders=holders: store.files_of_holders(connection, holders))
        files = {holder_of(file.id): file for file in found}
        for holder in dict.fromkeys(holders):
            yield files.get(holder, holder)


def is_damaged(connection: Connection, file: File) -> bool:
    """Return whether the content of a file is known to be damaged."""
    return content.is_damaged(connection, holder_of(file.id))


def describe_holders(connection: Connection, holders: Sequence[str]) -> Sequence[str]:
    """Describe holders of content for an operator."""
    files = {holder_of(file.id): file for file in store.files_of_holders(connection, holders)}
    return [_describe_file(files[holder]) if holder in files else holder for holder in holders]


def _describe_file(file: File) -> str:
    return f"file {file.id} {file.metadata.name!r} {file.cid} ({file.network}) of tenant {file.tenant_id}"
