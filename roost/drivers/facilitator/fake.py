"""A facilitator in memory, for tests: accounts with balances, and payments that move them."""

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from roost.core.ethereum import checksum_address
from roost.drivers.facilitator.contract import Facilitator, PaymentRequest, PaymentSettlement, Verification


class FakeFacilitator(Facilitator):
    """Settles payments in memory; signatures are not checked beyond their length.

    balances: tokens by lower-case address. on_verify, on_settle: awaited first; what they return is the answer.
    """

    def __init__(self) -> None:
        self.balances: Counter[str] = Counter()
        self.calls: list[str] = []
        self.settlements: dict[tuple[str, str], PaymentSettlement] = {}
        self.on_verify: Callable[[PaymentRequest], Awaitable[Verification | None]] | None = None
        self.on_settle: Callable[[PaymentRequest], Awaitable[PaymentSettlement | None]] | None = None

    async def verify(self, request: PaymentRequest) -> Verification:
        self.calls.append("verify")
        if self.on_verify is not None and (answer := await self.on_verify(request)) is not None:
            return answer
        payer, nonce, _ = _parse(request)
        reason = self._refusal(request)
        if reason is None and (payer, nonce) in self.settlements:
            reason = "invalid_exact_evm_nonce_already_used"
        return Verification(reason is None, payer, reason)

    async def settle(self, request: PaymentRequest) -> PaymentSettlement:
        self.calls.append("settle")
        if self.on_settle is not None and (answer := await self.on_settle(request)) is not None:
            return answer
        return self.move(request)

    def move(self, request: PaymentRequest) -> PaymentSettlement:
        """Settle a payment, once."""
        payer, nonce, value = _parse(request)
        network = str(request.requirements["network"])
        if (done := self.settlements.get((payer, nonce))) is not None:
            return done
        if (reason := self._refusal(request)) is not None:
            return PaymentSettlement(False, network=network, payer=payer, reason=reason)
        self.balances[payer] -= value
        self.balances[str(request.requirements["payTo"]).lower()] += value
        done = PaymentSettlement(True, f"0x{len(self.settlements) + 1:064x}", network, payer)
        self.settlements[payer, nonce] = done
        return done

    async def close(self) -> None:
        return

    def _refusal(self, request: PaymentRequest) -> str | None:
        payer, _, value = _parse(request)
        requirements, authorization = request.requirements, request.payload["payload"]["authorization"]
        for address in (authorization["from"], authorization["to"], requirements["asset"], requirements["payTo"]):
            if address != checksum_address(bytes.fromhex(address[2:])):
                return "invalid_address"
        if value != int(requirements.get("amount") or requirements["maxAmountRequired"]):
            return "invalid_exact_evm_payload_authorization_value_mismatch"
        if len(str(request.payload["payload"]["signature"])) < 132:
            return "invalid_exact_evm_payload_signature"
        return None if self.balances[payer] >= value else "invalid_exact_evm_insufficient_balance"


def _parse(request: PaymentRequest) -> tuple[str, str, int]:
    """Return payer, nonce and value of a payment."""
    authorization: Mapping[str, Any] = request.payload["payload"]["authorization"]
    return str(authorization["from"]).lower(), str(authorization["nonce"]).lower(), int(authorization["value"])
