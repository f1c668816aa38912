"""Addresses of Ethereum accounts and contracts, and the hash that their checksums are made of."""

import re

from Crypto.Hash import keccak

from roost.core.problem import InvalidInput

_ADDRESS = re.compile(r"0x[0-9a-fA-F]{40}", re.ASCII)


class InvalidAddress(InvalidInput):
    message = "Invalid address"


def keccak256(data: bytes) -> bytes:
    return keccak.new(digest_bits=256, data=data).digest()


def parse_address(text: str, field: str = "address") -> bytes:
    """Parse a 20-byte address; verify the checksum of mixed case (EIP-55). Raises InvalidAddress."""
    if _ADDRESS.fullmatch(text) is None:
        raise InvalidAddress(f"{field} must be 0x and 40 hexadecimal digits")
    digits = text[2:]
    if digits not in (digits.lower(), digits.upper()) and text != checksum_address(bytes.fromhex(digits)):
        raise InvalidAddress(f"the checksum of {field} is wrong")
    return bytes.fromhex(digits)


def checksum_address(address: bytes) -> str:
    """Format an address with its checksum (EIP-55)."""
    digits = address.hex()
    marks = keccak256(digits.encode()).hex()
    return "0x" + "".join(
        digit.upper() if int(mark, 16) >= 8 else digit for digit, mark in zip(digits, marks, strict=False)
    )
