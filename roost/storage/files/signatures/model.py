"""Wallet signatures and the messages that they may sign."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from roost.core import clock
from roost.core.problem import NotFound, ResourceConflict
from roost.storage.content.unixfs.cid import Cid
from roost.storage.files.model import File
from roost.storage.files.signatures import ethereum


class SignatureExists(ResourceConflict):
    message = "CID already has a signature"


class SignatureMissing(NotFound):
    message = "Signature not found"


@dataclass(frozen=True)
class WalletSignature:
    """Signature of a file: lower-case `signature`, `address` with its checksum."""

    file_id: str
    cid: str
    signature: str
    address: str
    created_at: datetime


def signable_digests(file: File, spelling: str, address: bytes) -> Sequence[bytes]:
    """Return the digests of all messages that sign this file.

    The CID may be spelled as in the request or as in the file. The date is the creation time of the file in ISO format,
    with milliseconds as in JavaScript, or as in our responses. A `personal_sign` message is the CID alone.
    """
    cids = dict.fromkeys((spelling, file.cid, *Cid.parse_spellings(file.cid)))
    dates = (format_milliseconds(file.created_at), clock.format_iso(file.created_at))
    return [
        *(ethereum.typed_data_digest(address, cid, date) for cid in cids for date in dates),
        *(ethereum.personal_message_digest(cid) for cid in cids),
    ]


def format_milliseconds(moment: datetime) -> str:
    """Format a time like `2026-11-21T10:29:47.355Z`."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
