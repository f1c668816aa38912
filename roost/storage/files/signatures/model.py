"""Wallet signatures and the messages that they may sign: EIP-712 typed data, and EIP-191 `personal_sign`.

Signatures of smart contracts (ERC-1271) need a chain to verify and are rejected.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from coincurve import PublicKey

from roost.core import clock
from roost.core.ethereum import keccak256
from roost.core.problem import InvalidInput, NotFound, ResourceConflict
from roost.storage.content.unixfs.cid import Cid
from roost.storage.files.model import File

_HALF_ORDER = 0x7FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF5D576E7357A4501DDFE92F46681B20A0
"""Half the order of secp256k1, the maximum of `s` (EIP-2), which prevents malleable signatures."""
_SIGNATURE = re.compile(r"0x[0-9a-fA-F]{130}", re.ASCII)
_RECOVERY = {0: 0, 1: 1, 27: 0, 28: 1}

_DOMAIN = keccak256(
    keccak256(b"EIP712Domain(string name,string version,uint256 chainId)")
    + keccak256(b"Sign Content")
    + keccak256(b"1.0.0")
    + (1).to_bytes(32, "big")
)
_SIGN = keccak256(b"Sign(address address,string cid,string date)")


class InvalidSignature(InvalidInput):
    message = "Invalid signature"


def typed_data_digest(address: bytes, cid: str, date: str) -> bytes:
    """Return the digest of `Sign{address, cid, date}` in the domain `Sign Content` (EIP-712)."""
    message = _SIGN + address.rjust(32, b"\0") + keccak256(cid.encode()) + keccak256(date.encode())
    return keccak256(b"\x19\x01" + _DOMAIN + keccak256(message))


def personal_message_digest(text: str) -> bytes:
    """Return the digest of a text for `personal_sign` (EIP-191, version 0x45)."""
    data = text.encode()
    return keccak256(b"\x19Ethereum Signed Message:\n" + str(len(data)).encode() + data)


def parse_signature(text: str) -> bytes:
    """Parse a signature into r, s and a recovery bit of 0 or 1. Raises InvalidSignature."""
    if _SIGNATURE.fullmatch(text) is None:
        raise InvalidSignature("signature must be 0x and 130 hexadecimal digits")
    signature = bytes.fromhex(text[2:])
    if signature[64] not in _RECOVERY:
        raise InvalidSignature("the last byte of signature must be 0, 1, 27 or 28")
    if int.from_bytes(signature[32:64], "big") > _HALF_ORDER:
        raise InvalidSignature("s of signature is in the upper half of the order")
    return signature[:64] + bytes((_RECOVERY[signature[64]],))


def is_signer(address: bytes, signature: bytes, digests: Sequence[bytes]) -> bool:
    """Return whether the account of that address signed one of the digests."""
    return any(_recover_address(signature, one) == address for one in digests)


def _recover_address(signature: bytes, digest: bytes) -> bytes | None:
    """Recover the signer's address; None for an invalid signature."""
    try:
        key = PublicKey.from_signature_and_message(signature, digest, hasher=None)
    except ValueError:
        return None
    return keccak256(key.format(compressed=False)[1:])[-20:]


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
        *(typed_data_digest(address, cid, date) for cid in cids for date in dates),
        *(personal_message_digest(cid) for cid in cids),
    ]


def format_milliseconds(moment: datetime) -> str:
    """Format a time like `2026-11-21T10:29:47.355Z`."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
