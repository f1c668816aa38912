"""Facilitator with a key of its own, which sends the transactions of payments to a chain, by the SDK of x402.

It settles once: for a payment whose transaction is on the chain already, `settle` returns that transaction, so a caller
that lost an answer asks again. Calls are synchronous in the SDK and run in threads.
"""

# pyright: reportMissingTypeStubs=false
# The types of the SDK are inline.

import re
import threading
from typing import Any

from web3 import Web3
from web3.exceptions import Web3Exception
from x402 import x402FacilitatorSync
from x402.mechanisms.evm.exact.eip3009_utils import (
    ParsedEIP3009Authorization,
    classify_eip3009_signature,
    parse_eip3009_authorization,
    verify_eip3009_transfer_event,
)
from x402.mechanisms.evm.exact.facilitator import ExactEvmScheme, ExactEvmSchemeConfig
from x402.mechanisms.evm.exact.v1.facilitator import ExactEvmSchemeV1, ExactEvmSchemeV1Config
from x402.mechanisms.evm.signers import FacilitatorWeb3Signer
from x402.mechanisms.evm.types import ExactEIP3009Payload
from x402.mechanisms.evm.utils import hex_to_bytes
from x402.mechanisms.evm.v1.constants import V1_NETWORK_CHAIN_IDS
from x402.schemas import SchemeNotFoundError

from roost.core.machine.network_advice import describe_network_error
from roost.core.machine.threads import run_in_daemon_thread
from roost.core.sensitive import Sensitive
from roost.drivers.facilitator.contract import (
    SETTLE_SECONDS,
    Facilitator,
    FacilitatorFailed,
    FacilitatorUnavailable,
    PaymentRequest,
    PaymentSettlement,
    Verification,
)
from roost.drivers.facilitator.x402_sdk import from_settle_response, from_verify_response, to_sdk

_KEY = re.compile(r"(0x)?[0-9a-fA-F]{64}", re.ASCII)
_RECEIPT_SECONDS = SETTLE_SECONDS - 5.0
"""Seconds until a transaction counts as pending, so that this answer comes before the caller's limit."""
_UNKNOWN_NETWORK = "unsupported_scheme"
_SEARCHED_BLOCKS = 2_000
"""Newest blocks in which the transaction of a payment is searched; services that offer an RPC bound such searches."""
_USED = Web3.keccak(text="AuthorizationUsed(address,bytes32)")
RpcError = (Web3Exception, OSError, ValueError)
"""Errors of calls to an RPC address: of the chain, of the connection, and of malformed answers."""


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


class ChainSigner(FacilitatorWeb3Signer):
    """Sends one transaction at a time, and leaves no gap in its numbers when one cannot be sent."""

    def __init__(self, key: str, rpc_url: str, receipt_seconds: float) -> None:
        super().__init__(key, rpc_url, confirmation_timeout_seconds=receipt_seconds)
        self._sending = threading.Lock()

    def write_contract(
        self, address: str, abi: list[dict[str, Any]], function_name: str, *args: Any, data_suffix: str | None = None
    ) -> str:
        with self._sending:
            try:
                return super().write_contract(address, abi, function_name, *args, data_suffix=data_suffix)
            except Exception:
                self._next_nonce = None  # the number was reserved and may be unused: ask the chain for the next one
                raise

    def find_transfer(self, token: str, transfer: ParsedEIP3009Authorization) -> str | None:
        """Return the transaction that made a signed transfer (EIP-3009), or None if none of the newest blocks has it.

        Its errors are those of `RpcError`.
        """
        eth = self._w3.eth
        topics = [_USED, bytes.fromhex(transfer.from_address[2:]).rjust(32, b"\0"), transfer.nonce]
        first = max(0, eth.block_number - _SEARCHED_BLOCKS)
        address = Web3.to_checksum_address(token)
        found = eth.get_logs({"address": address, "fromBlock": first, "topics": [Web3.to_hex(one) for one in topics]})
        for log in found:
            receipt = eth.get_transaction_receipt(log["transactionHash"])
            if receipt["status"] == 1 and verify_eip3009_transfer_event(
                list(receipt["logs"]),
                token,
                from_address=transfer.from_address,
                to=transfer.to,
                value=transfer.value,
            ):
                return Web3.to_hex(log["transactionHash"])
        return None
