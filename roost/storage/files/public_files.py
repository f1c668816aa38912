"""Public files of all tenants together: for what is told to the outside, where it does not matter whose they are."""

from collections.abc import Sequence

from sqlalchemy import Connection

from roost.storage.files import store
from roost.storage.unixfs.cid import Cid


def is_public(connection: Connection, cid: Cid) -> bool:
    """Whether anybody has a public file of that CID, however it is written."""
    return store.any_public(connection, [str(one) for one in cid.spellings()])


def public_cids(connection: Connection, after: str, limit: int) -> Sequence[str]:
    """The CIDs of public files as they are written, each once, those after one."""
    return store.public_cids(connection, after, limit)
