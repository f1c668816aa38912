"""Public files of all tenants together, for announcements to the public network."""

from collections.abc import Sequence

from sqlalchemy import Connection

from roost.storage.files import store
from roost.storage.unixfs.cid import Cid


def is_public(connection: Connection, cid: Cid) -> bool:
    """Return whether any tenant has a public file of that CID, in any spelling."""
    return store.has_public(connection, [str(one) for one in cid.spellings()])


def public_cids(connection: Connection, after: str, limit: int) -> Sequence[str]:
    """List the distinct CIDs of public files after one, as stored."""
    return store.public_cids(connection, after, limit)
