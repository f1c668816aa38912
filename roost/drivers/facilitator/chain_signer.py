"""Account that sends transactions to a chain through an RPC address, for the SDK of x402."""

import threading
from typing import Any

from web3 import Web3
from web3.exceptions import Web3Exception
from x402.mechanisms.evm.exact.eip3009_utils import (  # pyright: ignore[reportMissingTypeStubs] - its types are inline
    ParsedEIP3009Authorization,
    verify_eip3009_transfer_event,
)
from x402.mechanisms.evm.signers import (  # pyright: ignore[reportMissingTypeStubs] - its types are inline
    FacilitatorWeb3Signer,
)

_SEARCHED_BLOCKS = 2_000
"""Newest blocks in which the transaction of a payment is searched; services that offer an RPC bound such searches."""
_USED = Web3.keccak(text="AuthorizationUsed(address,bytes32)")


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


RpcError = (Web3Exception, OSError, ValueError)
"""Errors of calls to an RPC address: of the chain, of the connection, and of malformed answers."""
