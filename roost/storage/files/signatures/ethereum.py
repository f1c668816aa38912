"""Verify signatures of Ethereum accounts over EIP-712 typed data and EIP-191 `personal_sign` messages.

Signatures of smart contracts (ERC-1271) need a chain to verify and are rejected.
"""

import re
from collections.abc import Sequence

from coincurve import PublicKey

from roost.core.ethereum import keccak256
from roost.core.problem import InvalidInput

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
