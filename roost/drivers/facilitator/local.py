"""Facilitator with a key of its own, which sends the transactions of payments to a chain, by the SDK of x402.

It settles once: for a payment whose transaction is on the chain already, `settle` returns that transaction, so a caller
that lost an answer asks again. Calls are synchronous in the SDK and run in threads.
"""

import re
from typing import Any

from x402 import x402FacilitatorSync
from x402.mechanisms.evm.exact.eip3009_utils import (  # pyright: ignore[reportMissingTypeStubs] - its types are inline
    classify_eip3009_signature,
    parse_eip3009_authorization,
)
from x402.mechanisms.evm.exact.facilitator import (  # pyright: ignore[reportMissingTypeStubs] - its types are inline
    ExactEvmScheme,
    ExactEvmSchemeConfig,
)
from x402.mechanisms.evm.exact.v1.facilitator import (  # pyright: ignore[reportMissingTypeStubs] - its types are inline
    ExactEvmSchemeV1,
    ExactEvmSchemeV1Config,
)
from x402.mechanisms.evm.types import (  # pyright: ignore[reportMissingTypeStubs] - its types are inline
    ExactEIP3009Payload,
)
from x402.mechanisms.evm.utils import (  # pyright: ignore[reportMissingTypeStubs] - its types are inline
    hex_to_bytes,
)
from x402.mechanisms.evm.v1.constants import (  # pyright: ignore[reportMissingTypeStubs] - its types are inline
    V1_NETWORK_CHAIN_IDS,
)
from x402.schemas import SchemeNotFoundError

from roost.core.machine.network_advice import describe_network_error
from roost.core.machine.threads import run_in_daemon_thread
from roost.core.sensitive import Sensitive
from roost.drivers.facilitator.chain_signer import ChainSigner, RpcError
from roost.drivers.facilitator.contract import (
    SETTLE_SECONDS,
    Facilitator,
    FacilitatorFailed,
    FacilitatorUnavailable,
    PaymentRequest,
    PaymentSettlement,
    Verification,
)
from roost.drivers.facilitator.x402_forms import from_settle_response, from_verify_response, to_sdk

_KEY = re.compile(r"(0x)?[0-9a-fA-F]{64}", re.ASCII)
_RECEIPT_SECONDS = SETTLE_SECONDS - 5.0
"""Seconds until a transaction counts as pending, so that this answer comes before the caller's limit."""
_UNKNOWN_NETWORK = "unsupported_scheme"


class LocalFacilitator(Facilitator):
    """Serves the chain behind one RPC address."""

    def __init__(self, key: Sensitive[str], rpc_url: str, receipt_seconds: float = _RECEIPT_SECONDS) -> None:
        """Connect to the chain. Raises FacilitatorUnavailable, and FacilitatorFailed for a malformed key."""
        if _KEY.fullmatch(key.reveal()) is None:  # shorter ones are valid for the library, and other accounts
            raise FacilitatorFailed("The key must be 64 hexadecimal digits")
        try:
            self._signer = ChainSigner(key.reveal(), rpc_url, receipt_seconds)
            chain_id = self._signer.get_chain_id()
        except RpcError as error:
            raise FacilitatorUnavailable(
                f"No chain answers at the RPC address: {describe_network_error(error)}"
            ) from None
        self.network = f"eip155:{chain_id}"
        self.old_networks = [name for name, one in V1_NETWORK_CHAIN_IDS.items() if one == chain_id]
        self._facilitator = x402FacilitatorSync()
        # A transaction that is simulated first costs no gas when it cannot succeed.
        scheme = ExactEvmScheme(self._signer, ExactEvmSchemeConfig(simulate_in_settle=True))
        self._facilitator.register([self.network], scheme)
        if self.old_networks:
            old_scheme = ExactEvmSchemeV1(self._signer, ExactEvmSchemeV1Config(simulate_in_settle=True))
            self._facilitator.register_v1(self.old_networks, old_scheme)
        self._chain_id = chain_id

    @property
    def address(self) -> str:
        """The account that sends the transactions."""
        return self._signer.address

    def describe(self) -> dict[str, Any]:
        """Return the payments that are served, in the form of `/supported`."""
        return self._facilitator.get_supported().model_dump(by_alias=True, exclude_none=True)

    async def verify(self, request: PaymentRequest) -> Verification:
        return await run_in_daemon_thread(lambda: self._verify(request))

    async def settle(self, request: PaymentRequest) -> PaymentSettlement:
        return await run_in_daemon_thread(lambda: self._settle(request))

    async def close(self) -> None:
        return

    def _verify(self, request: PaymentRequest) -> Verification:
        try:
            return from_verify_response(self._facilitator.verify(*to_sdk(request)))
        except SchemeNotFoundError:
            return Verification(False, reason=_UNKNOWN_NETWORK)
        except (*RpcError, RuntimeError) as error:
            raise FacilitatorFailed(f"The payment could not be checked: {describe_network_error(error)}") from None

    def _settle(self, request: PaymentRequest) -> PaymentSettlement:
        try:
            answer = from_settle_response(self._facilitator.settle(*to_sdk(request)))
            return answer if answer.is_settled else self._find_settlement(request) or answer
        except SchemeNotFoundError:
            return PaymentSettlement(False, reason=_UNKNOWN_NETWORK)
        except (*RpcError, RuntimeError) as error:
            raise FacilitatorFailed(f"The payment could not be settled: {describe_network_error(error)}") from None

    def _find_settlement(self, request: PaymentRequest) -> PaymentSettlement | None:
        """Return the settlement of a payment that is on the chain already, or None."""
        requirements = request.requirements
        authorization = ExactEIP3009Payload.from_dict(dict(request.payload["payload"]))
        transfer, extra = parse_eip3009_authorization(authorization.authorization), requirements["extra"]
        amount = int(requirements["amount" if request.version == 2 else "maxAmountRequired"])
        if transfer.value != amount or transfer.to.lower() != requirements["payTo"].lower():
            return None
        signature = classify_eip3009_signature(
            self._signer,
            authorization.authorization,
            hex_to_bytes(authorization.signature or ""),
            self._chain_id,
            requirements["asset"],
            extra["name"],
            extra["version"],
        )
        transaction = self._signer.find_transfer(requirements["asset"], transfer) if signature.valid else None
        if transaction is None:
            return None
        return PaymentSettlement(True, transaction, requirements["network"], transfer.from_address)
