"""Verify the signature of a transfer with authorization (EIP-3009), typed data in the domain of its token (EIP-712).

Signatures of smart contracts (ERC-1271, ERC-6492) are longer; only a chain can verify them.
"""

from roost.core.ethereum import keccak256
from roost.core.payment_asset import PaymentAsset
from roost.storage.files.signatures import ethereum
from roost.storage.files.signatures.errors import InvalidSignature
from roost.storage.payments.model import TransferAuthorization

ACCOUNT_SIGNATURE_LENGTH = 65
_DOMAIN = keccak256(b"EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)")
_TRANSFER = keccak256(
    b"TransferWithAuthorization(address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,"
    b"bytes32 nonce)"
)


def transfer_digest(asset: PaymentAsset, transfer: TransferAuthorization) -> bytes:
    """Return the digest that the sender of a transfer signs."""
    domain = keccak256(
        _DOMAIN
        + keccak256(asset.name.encode())
        + keccak256(asset.version.encode())
        + _number(asset.network.chain_id)
        + _address(asset.address)
    )
    message = keccak256(
        _TRANSFER
        + _address(transfer.payer)
        + _address(transfer.pay_to)
        + _number(transfer.value)
        + _number(transfer.valid_after)
        + _number(transfer.valid_before)
        + bytes.fromhex(transfer.nonce[2:])
    )
    return keccak256(b"\x19\x01" + domain + message)


def is_signed_by_payer(asset: PaymentAsset, transfer: TransferAuthorization) -> bool:
    """Return whether the payer's own key signed the transfer; True for signatures that only a chain can verify."""
    if len(transfer.signature) != ACCOUNT_SIGNATURE_LENGTH:
        return True
    try:
        signature = ethereum.parse_signature(f"0x{transfer.signature.hex()}")
    except InvalidSignature:
        return False
    return ethereum.is_signer(bytes.fromhex(transfer.payer[2:]), signature, [transfer_digest(asset, transfer)])


def _number(value: int) -> bytes:
    return value.to_bytes(32, "big")


def _address(text: str) -> bytes:
    return bytes.fromhex(text[2:]).rjust(32, b"\0")
