"""Networks and tokens that payment requirements may name. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from roost.core.ethereum import InvalidAddress, parse_address
from roost.core.payment_asset import PaymentAsset, PaymentNetwork
from roost.storage.payments.instructions.errors import InvalidPaymentAssets, InvalidPaymentInstruction

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
