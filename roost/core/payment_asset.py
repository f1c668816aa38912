"""Networks and tokens of payments (x402), as the settings name them."""

from dataclasses import dataclass


@dataclass(frozen=True)
class PaymentNetwork:
    """An EVM chain; `name` is its name in version 1 of x402, if it has one."""

    chain_id: int
    name: str | None = None

    @property
    def caip2(self) -> str:
        """Return its name in version 2 of x402 (CAIP-2)."""
        return f"eip155:{self.chain_id}"


@dataclass(frozen=True)
class PaymentAsset:
    """A token whose transfers are authorised by signatures (EIP-3009) in its EIP-712 domain: `name` and `version`."""

    network: PaymentNetwork
    address: str
    name: str
    version: str
