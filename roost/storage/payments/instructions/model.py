"""Payment instructions: named sets of payment requirements (x402), and the CIDs that they are attached to. Pure."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from roost.core.ethereum import InvalidAddress, parse_address
from roost.core.payment_asset import PaymentAsset, PaymentNetwork
from roost.core.problem import InvalidInput, NotFound, ResourceConflict


class PaymentInstructionNotFound(NotFound):
    """The instruction does not exist or belongs to another tenant; the response does not say which."""

    message = "Payment instruction not found"


class InvalidPaymentInstruction(InvalidInput):
    message = "Invalid payment instruction"


class EmptyPaymentInstructionUpdate(InvalidInput):
    message = "name, description or payment_requirements is required"


class PaymentInstructionInUse(ResourceConflict):
    message = "CIDs are attached to the payment instruction"


class CidAlreadyAttached(ResourceConflict):
    message = "CID is attached to another payment instruction"


class CidNotAttached(NotFound):
    message = "CID is not attached to the payment instruction"


class InvalidPaymentAssets(InvalidInput):
    """The setting `payment_assets` contradicts itself or what is built in."""

    message = "payment_assets: invalid"


_BASE, _BASE_SEPOLIA = PaymentNetwork(8453, "base"), PaymentNetwork(84532, "base-sepolia")
BUILT_IN = (
    PaymentAsset(_BASE, "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913", "USD Coin", "2"),
    PaymentAsset(_BASE_SEPOLIA, "0x036CbD53842c5426634e7929541eC2318f3dCF7e", "USDC", "2"),
)
"""USDC on Base and on its test network."""


class PaymentAssets:
    """The built-in tokens and those of the setting `payment_assets`, which can replace them."""

    def __init__(self, configured: Iterable[PaymentAsset] = ()) -> None:
        """Raise InvalidPaymentAssets for a wrong address, or a network with two names or a name of two networks."""
        assets = (*BUILT_IN, *configured)
        self._networks = _index_networks(asset.network for asset in assets)
        self._assets = {
            (asset.network.chain_id, _parse_configured(asset)): replace(
                asset, network=self._networks[asset.network.caip2]
            )
            for asset in assets
        }

    def find_network(self, name: str) -> PaymentNetwork | None:
        """Return a network by its name in either version of x402: `base` or `eip155:8453`."""
        return self._networks.get(name)

    def find_asset(self, network: str, address: str) -> PaymentAsset | None:
        """Return the token with that address, in upper, lower or mixed case, on a network. Raises InvalidAddress."""
        found = self.find_network(network)
        return None if found is None else self._assets.get((found.chain_id, parse_address(address, "asset")))

    def require_asset(self, network: str, address: str) -> PaymentAsset:
        """Return the token. Raises InvalidAddress, and InvalidPaymentInstruction, which says what is allowed."""
        found = self.find_network(network)
        if found is None:
            raise InvalidPaymentInstruction(f"network must be one of {', '.join(self._networks)}, got {network!r}")
        asset = self.find_asset(network, address)
        if asset is None:
            here = (f"{one.address} ({one.name})" for one in self._assets.values() if one.network == found)
            raise InvalidPaymentInstruction(f"asset on {network} must be one of {', '.join(here)}, got {address!r}")
        return asset


def _index_networks(networks: Iterable[PaymentNetwork]) -> Mapping[str, PaymentNetwork]:
    """Index networks by both names. Raises InvalidPaymentAssets."""
    names: dict[int, str | None] = {}
    for network in networks:
        known = names.get(network.chain_id)
        if None not in (known, network.name) and known != network.name:
            raise InvalidPaymentAssets(f"payment_assets: {network.caip2} is named {known}, got {network.name!r}")
        names[network.chain_id] = known or network.name
    indexed: dict[str, PaymentNetwork] = {}
    for chain_id, name in names.items():
        network = PaymentNetwork(chain_id, name)
        for key in (name, network.caip2):
            if key is not None and indexed.setdefault(key, network) is not network:
                raise InvalidPaymentAssets(f"payment_assets: {key} is {indexed[key].caip2}, got {network.caip2}")
    return indexed


def _parse_configured(asset: PaymentAsset) -> bytes:
    try:
        return parse_address(asset.address, asset.address)
    except InvalidAddress as error:
        raise InvalidPaymentAssets(f"payment_assets: {error.message}") from None


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
