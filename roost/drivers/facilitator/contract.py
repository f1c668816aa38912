"""Contract of a facilitator, which checks payments (x402) and sends them to a chain.

A facilitator is trusted to move no money that a payer has not signed for, and for nothing else: callers compare its
answers with what they asked for. `verify` moves no money and may be repeated. `settle` moves the money of a payment
once, however often it is called; a call after the first returns the same settlement or a refusal. A call that raises,
or whose caller dies, may have moved the money: only another `settle` of the same payment tells.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from roost.core.problem import Problem, ServiceUnavailable

VERIFY_SECONDS, SETTLE_SECONDS = 10.0, 25.0
"""Limits of the two calls; a settlement waits for its transaction."""
ANSWER_LIMIT = 64 * 1024
"""Maximum bytes of an answer."""
RETRY_SECONDS = 5.0


class FacilitatorUnavailable(ServiceUnavailable):
    """The facilitator did not answer."""

    message = "The facilitator of payments does not answer"


class FacilitatorFailed(Problem):
    """The facilitator answered with an error, or with something else than an answer."""

    message = "The facilitator of payments failed"


@dataclass(frozen=True)
class PaymentRequest:
    """A payment and the requirement that it meets, as JSON in the form of their protocol version, 1 or 2.

    Addresses have their checksum (EIP-55).
    """

    version: int
    payload: Mapping[str, Any]
    requirements: Mapping[str, Any]


@dataclass(frozen=True)
class Verification:
    """reason: a word of the protocol for why a payment is not valid."""

    is_valid: bool
    payer: str | None = None
    reason: str | None = None


@dataclass(frozen=True)
class PaymentSettlement:
    """transaction: its hash, empty if none was sent. network, payer, amount: what the facilitator says, if it does."""

    is_settled: bool
    transaction: str = ""
    network: str = ""
    payer: str | None = None
    amount: str | None = None
    reason: str | None = None


class Facilitator(ABC):
    """Checks payments and sends them to a chain."""

    @abstractmethod
    async def verify(self, request: PaymentRequest) -> Verification:
        """Check whether a payment would succeed. Raises FacilitatorUnavailable, FacilitatorFailed."""

    @abstractmethod
    async def settle(self, request: PaymentRequest) -> PaymentSettlement:
        """Move the money of a payment. Raises FacilitatorUnavailable, FacilitatorFailed; both leave it open."""

    @abstractmethod
    async def close(self) -> None:
        """Close the connections; further calls open new ones."""
