"""Payment instructions: named sets of payment requirements (x402), and the CIDs that they are attached to. Pure."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from roost.core.ethereum import parse_address
from roost.core.problem import InvalidInput
from roost.storage.payments.instructions.assets import PaymentAssets
from roost.storage.payments.instructions.errors import InvalidPaymentInstruction

NAME_LIMIT, DESCRIPTION_LIMIT = 255, 1000
REQUIREMENTS_LIMIT = 20
REQUIREMENT_DESCRIPTION_LIMIT = 255
PAGE_DEFAULT, CIDS_PAGE_DEFAULT, PAGE_LIMIT = 10, 20, 1000

_AMOUNT = re.compile(r"[1-9][0-9]{0,77}", re.ASCII)
_AMOUNT_LIMIT = 2**256
_SHOWN = 100
"""Characters of a refused value in a message."""


@dataclass(frozen=True)
class PaymentRequirement:
    """One way to pay.

    asset, pay_to: addresses, with a checksum if in mixed case. network: in either spelling, `base` or `eip155:8453`.
    amount: in the smallest units of the asset, as a decimal number.
    """

    asset: str
    pay_to: str
    network: str
    amount: str
    description: str = ""


@dataclass(frozen=True)
class PaymentInstruction:
    """A payer may choose among the requirements. version: 1, and one more with every update."""

    id: str
    tenant_id: str
    version: int
    payment_requirements: Sequence[PaymentRequirement]
    name: str
    description: str
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True)
class PaymentInstructionUpdate:
    """Changes of an instruction; None keeps a value."""

    name: str | None = None
    description: str | None = None
    payment_requirements: Sequence[PaymentRequirement] | None = None


@dataclass(frozen=True)
class PaymentInstructionFilter:
    """Filter of a list of instructions. name: substring. cid: in version 1."""

    id: str | None = None
    name: str | None = None
    cid: str | None = None


@dataclass(frozen=True)
class CidAttachment:
    """A CID that must be paid for. cid: in version 1, for all spellings. file_cid: as the file has it."""

    id: str
    tenant_id: str
    instruction_id: str
    cid: str
    file_cid: str
    created_at: datetime


def normalize_instruction_name(name: str) -> str:
    """Strip a name and check its length. Raises InvalidPaymentInstruction."""
    name = name.strip()
    if not 0 < len(name) <= NAME_LIMIT:
        raise InvalidPaymentInstruction(f"name must have 1 to {NAME_LIMIT} characters")
    return name


def check_requirements(requirements: Sequence[PaymentRequirement], assets: PaymentAssets) -> None:
    """Raise InvalidPaymentInstruction for the first requirement that is malformed or names an unknown asset."""
    if not 0 < len(requirements) <= REQUIREMENTS_LIMIT:
        raise InvalidPaymentInstruction(f"payment_requirements must have 1 to {REQUIREMENTS_LIMIT} items")
    for number, requirement in enumerate(requirements):
        try:
            _check_requirement(requirement, assets)
        except InvalidInput as error:
            raise InvalidPaymentInstruction(f"payment_requirements.{number}: {error.message}") from None


def _check_requirement(requirement: PaymentRequirement, assets: PaymentAssets) -> None:
    assets.require_asset(requirement.network, requirement.asset)
    if not any(parse_address(requirement.pay_to, "pay_to")):
        raise InvalidPaymentInstruction("pay_to must not be the zero address")
    amount = requirement.amount
    if _AMOUNT.fullmatch(amount) is None or int(amount) >= _AMOUNT_LIMIT:
        raise InvalidPaymentInstruction(
            "amount must be a number of the asset's smallest units from 1 to 2^256 - 1, in decimal digits without "
            f"leading zeros, got {amount[:_SHOWN]!r}"
        )
    if len(requirement.description) > REQUIREMENT_DESCRIPTION_LIMIT:
        raise InvalidPaymentInstruction(f"description must have at most {REQUIREMENT_DESCRIPTION_LIMIT} characters")
