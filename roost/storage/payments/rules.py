"""Whether a payment is what is asked for and its payer signed it, and whether a settlement is of that payment. Pure.

Payers sign a transfer with authorization (EIP-3009), typed data in the domain of its token (EIP-712). Signatures of
smart contracts (ERC-1271, ERC-6492) are longer; only a chain can verify them.
"""

import re
from collections.abc import Sequence
from datetime import datetime

from roost.core.ethereum import keccak256
from roost.core.payment_asset import PaymentAsset
from roost.drivers.facilitator.contract import PaymentSettlement
from roost.storage.files.signatures.model import InvalidSignature, is_signer, parse_signature
from roost.storage.payments.forms import AnyPayment
from roost.storage.payments.model import VALIDITY_MARGIN_SECONDS, PaymentRefused, PaymentTerms, TransferAuthorization

_TRANSACTION = re.compile(r"0x[0-9a-fA-F]{64}", re.ASCII)
_REFUSALS = ("invalid_", "insufficient_")
_OPEN = ("nonce_already_used", "transaction", "transfer_event")
"""Parts of reasons after which money may have moved, or still may."""
ACCOUNT_SIGNATURE_LENGTH = 65
_DOMAIN = keccak256(b"EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)")
_TRANSFER = keccak256(
    b"TransferWithAuthorization(address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,"
    b"bytes32 nonce)"
)


def match_terms(payment: AnyPayment, terms: Sequence[PaymentTerms], resource_url: str) -> PaymentTerms:
    """Return the terms that a payment meets. Raises PaymentRefused for one that meets none, or is for something else.

    Only the terms as they are now count, never what the payment says of them.
    """
    if payment.resource_url not in {None, resource_url}:
        raise PaymentRefused(f"The payment is for another resource than {resource_url}")
    accepted = [one for one in terms if payment.accepts(one)]
    if not accepted:
        raise PaymentRefused(
            "The payment is not for what is asked now: scheme, network, asset, amount or pay_to differ"
        )
    transfer = payment.payload.transfer
    matching = [one for one in accepted if one.pay_to.lower() == transfer.pay_to and one.amount == transfer.value]
    if not matching:
        raise PaymentRefused("The signed transfer is not of the amount that is asked, or to another address")
    signed = [one for one in matching if is_signed_by_payer(one.asset, transfer)]
    if not signed:
        raise PaymentRefused("The signature is not the payer's, or is for another asset or network")
    return signed[0]


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
        signature = parse_signature(f"0x{transfer.signature.hex()}")
    except InvalidSignature:
        return False
    return is_signer(bytes.fromhex(transfer.payer[2:]), signature, [transfer_digest(asset, transfer)])


def check_validity(transfer: TransferAuthorization, now: datetime) -> None:
    """Raise PaymentRefused for a transfer that is not valid yet, or not for long enough to be settled."""
    seconds = now.timestamp()
    if transfer.valid_after > seconds:
        raise PaymentRefused(f"The payment is valid after {transfer.valid_after}, and it is {int(seconds)}")
    if transfer.valid_before < seconds + VALIDITY_MARGIN_SECONDS:
        raise PaymentRefused(
            f"The payment is valid before {transfer.valid_before}, which must be {VALIDITY_MARGIN_SECONDS} s or more "
            f"after now, {int(seconds)}"
        )


def is_settlement_of(settlement: PaymentSettlement, transfer: TransferAuthorization, terms: PaymentTerms) -> bool:
    """Return whether a facilitator's answer names nothing but this transfer."""
    network = terms.asset.network
    return (
        _TRANSACTION.fullmatch(settlement.transaction) is not None
        and settlement.network in {network.caip2, network.name}
        and (settlement.payer is None or settlement.payer.lower() == transfer.payer)
        and (settlement.amount is None or settlement.amount == str(terms.amount))
    )


def is_definite_refusal(settlement: PaymentSettlement) -> bool:
    """Return whether a refusal says that no money has moved; with any other reason it may have."""
    reason = settlement.reason or ""
    return (
        not settlement.is_settled
        and reason.startswith(_REFUSALS)
        and not settlement.transaction
        and not any(part in reason for part in _OPEN)
    )


def _number(value: int) -> bytes:
    return value.to_bytes(32, "big")


def _address(text: str) -> bytes:
    return bytes.fromhex(text[2:]).rjust(32, b"\0")
