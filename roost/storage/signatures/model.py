"""A wallet's signature of a file, and what it may have signed."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from roost.core import clock
from roost.storage.files.model import File
from roost.storage.signatures import ethereum
from roost.storage.unixfs.cid import Cid


@dataclass(frozen=True)
class WalletSignature:
    """`cid` is the file's; `signature` as it was handed in, in lower case; `address` with its checksum."""

    file_id: str
    cid: str
    signature: str
    address: str
    created_at: datetime


def digests(file: File, spelling: str, address: bytes) -> Sequence[bytes]:
    """Everything that says: this account signs this file.

    The CID is told as the caller wrote it or as the file has it. The date is the file's creation in ISO form, to the
    millisecond, as JavaScript writes it, or as our own answers do. A plain text is the CID alone.
    """
    cids = dict.fromkeys((spelling, file.cid, *Cid.spelled(file.cid)))
    dates = (milliseconds(file.created_at), clock.format_iso(file.created_at))
    return [
        *(ethereum.typed(address, cid, date) for cid in cids for date in dates),
        *(ethereum.personal(cid) for cid in cids),
    ]


def milliseconds(moment: datetime) -> str:
    """`2026-11-21T10:29:47.355Z`."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
