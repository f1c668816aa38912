"""Payments: what is asked for, what a payer signed, and what became of it."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from roost.core.payment_asset import PaymentAsset
from roost.core.problem import NotFound, Problem, ProblemKind, ServiceUnavailable
from roost.drivers.facilitator.contract import SETTLE_SECONDS

CLAIM_SECONDS = SETTLE_SECONDS + 5.0
"""Seconds for which one request alone may settle a payment; longer than a settlement may take."""
MAX_TIMEOUT_SECONDS = 60
"""Seconds for which payers make their payments valid."""
VALIDITY_MARGIN_SECONDS = 6
"""Seconds for which a payment must still be valid, so that it can be settled."""
PAGE_DEFAULT, PAGE_LIMIT = 10, 1000


class PaymentState(StrEnum):
    SETTLING = "settling"
    """Claimed by a request, which settles it; if that ended without an answer, the payment is open like `unknown`."""
    SETTLED = "settled"
    """The money has moved and the content was served, once."""
    REFUSED = "refused"
    """No money has moved; the payment is used up."""
    UNKNOWN = "unknown"
    """The money may have moved; the same payment presented again may be settled again."""


OPEN_STATES = (PaymentState.SETTLING, PaymentState.UNKNOWN)


@dataclass(frozen=True)
class PaymentTerms:
    """One way to pay: so many of the smallest units of an asset to an address."""

    asset: PaymentAsset
    pay_to: str
    amount: int
    description: str = ""


@dataclass(frozen=True)
class PaidResource:
    """What a payment is for; payers see it."""

    url: str
    description: str
    mime_type: str


@dataclass(frozen=True)
class PaymentOffer:
    """What must be paid for a CID at a version of its instruction: one of the terms. cid: in version 1."""

    tenant_id: str
    cid: str
    instruction_id: str
    instruction_version: int
    description: str
    terms: Sequence[PaymentTerms]


@dataclass(frozen=True)
class TransferAuthorization:
    """A transfer that its sender signed (EIP-3009). Addresses and nonce: in lower case. Times: Unix seconds."""

    payer: str
    pay_to: str
    value: int
    valid_after: int
    valid_before: int
    nonce: str
    signature: bytes

    @property
    def digest(self) -> str:
        """A hash of all of it, signature included."""
        fields = (self.payer, self.pay_to, self.value, self.valid_after, self.valid_before, self.nonce)
        return hashlib.sha256(f"{fields} {self.signature.hex()}".encode()).hexdigest()


@dataclass(frozen=True)
class Payment:
    """A payment that was settled, or is to be. network: as `eip155:8453`. Addresses and nonce: in lower case.

    digest: that of the authorization. attempt: the number of the claim; only its holder records what became of it.
    """

    id: str
    tenant_id: str
    instruction_id: str
    instruction_version: int
    cid: str
    network: str
    asset: str
    payer: str
    nonce: str
    pay_to: str
    amount: str
    digest: str
    state: PaymentState
    attempt: int
    claimed_until: datetime
    created_at: datetime
    updated_at: datetime
    transaction_hash: str | None = None
    reason: str | None = None


@dataclass(frozen=True)
class PaymentFilter:
    """Filter of a list. cid: in version 1."""

    instruction_id: str | None = None
    cid: str | None = None
    state: PaymentState | None = None


@dataclass(frozen=True)
class PaymentTotal:
    """Settled payments of an instruction in one asset. amount: the sum, in its smallest units."""

    instruction_id: str
    network: str
    asset: str
    count: int
    amount: int


class PaymentRefused(Problem):
    """The payment is not what is asked for, so the content is not served: 402, with what is asked for."""

    kind = ProblemKind.INVALID
    message = "The payment is not valid"


class InstructionChanged(PaymentRefused):
    """The instruction changed while the payment was checked; nothing was taken."""

    message = "What must be paid has changed; nothing was taken"


class PaymentUsed(PaymentRefused):
    message = "The payment was presented before; each one pays for one response"


class PaymentInProgress(PaymentRefused):
    message = "The payment is being settled; present the same one again in some seconds unless you have the content"


class PaymentUnconfirmed(ServiceUnavailable):
    """The money may have moved; the same payment presented again finds out, and is not taken twice."""

    message = "The facilitator did not confirm the settlement; present the same payment again"


class PaymentsUnavailable(ServiceUnavailable):
    message = "This server takes no payments; its operator can name a facilitator with ROOST_FACILITATOR_URL"


class NoPayableAsset(ServiceUnavailable):
    message = "No asset of the payment instruction is configured on this server"


class ContentNotForSale(NotFound):
    """No instruction is attached to the content; the response is that of missing content."""

    message = "No payment instruction is attached to the content"
