"""Take payments for private content: check, verify, claim, settle, record. One settlement pays for one response.

A payment is claimed in a row before it is settled, and the row is unique by network, asset, payer and nonce: the key by
which the token itself takes a transfer once. Only the holder of the claim records what became of it. A claim that ended
without a record, because the server died or the facilitator did not answer, leaves the payment open: presented again it
is settled again, which moves no money twice, and serves the content if that succeeds. Decision 0033 says why.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from roost.core import clock, ids, log, page_cursor
from roost.core.db import Connection, Database
from roost.core.page_cursor import PageCursor
from roost.core.problem import Problem
from roost.drivers.facilitator.contract import (
    RETRY_SECONDS,
    Facilitator,
    FacilitatorFailed,
    FacilitatorUnavailable,
    PaymentRequest,
    PaymentSettlement,
)
from roost.identity import tenants
from roost.storage.content.unixfs.cid import Cid
from roost.storage.payments import rules, store
from roost.storage.payments.forms import AnyPayment
from roost.storage.payments.instructions.model import PaymentAssets, PaymentInstruction, PaymentRequirement
from roost.storage.payments.instructions.service import find_for_content
from roost.storage.payments.model import (
    CLAIM_SECONDS,
    OPEN_STATES,
    PAGE_LIMIT,
    ContentNotForSale,
    InstructionChanged,
    NoPayableAsset,
    PaidResource,
    Payment,
    PaymentFilter,
    PaymentInProgress,
    PaymentOffer,
    PaymentRefused,
    PaymentState,
    PaymentsUnavailable,
    PaymentTerms,
    PaymentTotal,
    PaymentUnconfirmed,
    PaymentUsed,
    TransferAuthorization,
)

_log = log.get_logger("payments")
_CLAIM = timedelta(seconds=CLAIM_SECONDS)


@dataclass(frozen=True)
class VerifiedPayment:
    """A payment that may be settled. row: that of an open payment which is presented again, or None for a new one."""

    offer: PaymentOffer
    terms: PaymentTerms
    transfer: TransferAuthorization
    request: PaymentRequest
    row: Payment | None = None


class PaymentService:
    def __init__(self, db: Database, assets: PaymentAssets, facilitator: Facilitator | None) -> None:
        self._db = db
        self._assets = assets
        self._facilitator = facilitator

    async def get_offer(self, tenant_id: str, cid: Cid) -> PaymentOffer:
        """Return what must be paid for a private CID of the tenant.

        Raises ContentNotForSale, and PaymentsUnavailable or NoPayableAsset if this server takes no payment for it.
        """
        instruction = await self._db.read(lambda connection: find_for_content(connection, tenant_id, cid))
        if instruction is None:
            raise ContentNotForSale
        if self._facilitator is None:
            raise PaymentsUnavailable
        return self._create_offer(instruction, str(cid.v1()))

    async def verify(self, offer: PaymentOffer, payment: AnyPayment, resource: PaidResource) -> VerifiedPayment:
        """Check a payment against the offer, and ask the facilitator about a new one. Nothing is taken.

        Raises PaymentRefused, FacilitatorUnavailable, FacilitatorFailed.
        """
        transfer = payment.payload.transfer
        row = await self._db.read(lambda connection: store.find_payment(connection, transfer.payer, transfer.nonce))
        if row is not None:
            terms = self._resume_terms(offer, row, transfer)
            return VerifiedPayment(offer, terms, transfer, payment.to_request(terms, resource), row)
        terms = rules.match_terms(payment, offer.terms, resource.url)
        rules.check_validity(transfer, clock.utc_now())
        request = payment.to_request(terms, resource)
        verification = await self._ask().verify(request)
        if not verification.is_valid:
            raise PaymentRefused(f"The facilitator refused the payment: {verification.reason}")
        if verification.payer is not None and verification.payer.lower() != transfer.payer:
            raise FacilitatorFailed("The facilitator of payments verified another payer")
        return VerifiedPayment(offer, terms, transfer, request)

    async def settle(self, verified: VerifiedPayment) -> Payment:
        """Claim a payment, settle it and record it; the caller serves the content once.

        Raises PaymentRefused, PaymentUnconfirmed, FacilitatorFailed; in all cases the content is not paid for.
        """
        claimed = await self._db.write(lambda connection: _claim(connection, verified))
        try:
            settlement = await self._ask().settle(verified.request)
        except (FacilitatorUnavailable, FacilitatorFailed) as problem:
            await self._record(claimed, PaymentState.UNKNOWN, reason=problem.message)
            raise PaymentUnconfirmed(retry_after=RETRY_SECONDS) from problem
        if not settlement.is_settled or settlement.reason:  # one that succeeds and names an error is neither
            raise await self._refuse(claimed, settlement)
        if not rules.is_settlement_of(settlement, verified.transfer, verified.terms):
            await self._record(claimed, PaymentState.UNKNOWN, reason="the facilitator settled something else")
            raise FacilitatorFailed("The facilitator of payments settled something else than was asked")
        return await self._record(claimed, PaymentState.SETTLED, settlement.transaction)

    async def list(
        self, tenant_id: str, wanted: PaymentFilter, token: str | None, limit: int
    ) -> tuple[Sequence[Payment], str | None]:
        """Return a page, newest first, and the token of the next page. Raises InvalidCid, InvalidPageToken."""
        after = PageCursor.parse(token) if token else None
        limit = min(max(limit, 1), PAGE_LIMIT)
        if wanted.cid is not None:
            wanted = replace(wanted, cid=str(Cid.parse(wanted.cid).v1()))
        rows = await self._db.read_long(
            lambda connection: store.list_payments(connection, tenant_id, wanted, after, limit + 1), tenant_id
        )
        return page_cursor.split_page(rows, limit)

    async def totals(self, tenant_id: str) -> Sequence[PaymentTotal]:
        """Sum the settled payments by instruction and asset."""
        return await self._db.read_long(lambda connection: store.sum_payments(connection, tenant_id), tenant_id)

    def _ask(self) -> Facilitator:
        if self._facilitator is None:
            raise PaymentsUnavailable
        return self._facilitator

    def _create_offer(self, instruction: PaymentInstruction, cid: str) -> PaymentOffer:
        terms = [one for one in map(self._create_terms, instruction.payment_requirements) if one is not None]
        if not terms:
            raise NoPayableAsset
        description = instruction.description or instruction.name
        return PaymentOffer(instruction.tenant_id, cid, instruction.id, instruction.version, description, terms)

    def _create_terms(self, requirement: PaymentRequirement) -> PaymentTerms | None:
        """Return the terms of a requirement, or None if its asset is no longer configured."""
        asset = self._assets.find_asset(requirement.network, requirement.asset)
        if asset is None:
            return None
        return PaymentTerms(asset, requirement.pay_to, int(requirement.amount), requirement.description)

    def _resume_terms(self, offer: PaymentOffer, row: Payment, transfer: TransferAuthorization) -> PaymentTerms:
        """Return the terms of an open payment that is presented again, as they were when it was first.

        Raises PaymentUsed, also for one that is for other content or has another signature, and PaymentInProgress.
        """
        asset = self._assets.find_asset(row.network, row.asset)
        same = (row.tenant_id, row.cid, row.digest) == (offer.tenant_id, offer.cid, transfer.digest)
        if row.state not in OPEN_STATES or not same or asset is None:
            raise PaymentUsed
        if row.claimed_until > clock.utc_now():
            raise PaymentInProgress
        return PaymentTerms(asset, row.pay_to, int(row.amount))

    async def _refuse(self, claimed: Payment, settlement: PaymentSettlement) -> Problem:
        """Record a refusal and return the problem for the payer.

        After an earlier attempt no refusal is definite: that attempt may have moved the money.
        """
        reason = settlement.reason or "no reason given"
        if claimed.attempt == 1 and rules.is_definite_refusal(settlement):
            await self._record(claimed, PaymentState.REFUSED, reason=reason)
            return PaymentRefused(f"The facilitator refused to settle the payment: {reason}")
        await self._record(claimed, PaymentState.UNKNOWN, settlement.transaction or None, reason)
        return PaymentUnconfirmed(
            f"The facilitator did not confirm the settlement: {reason}. Present the same payment again; if that does "
            f"not help, ask the seller about payment {claimed.id}",
            retry_after=RETRY_SECONDS,
        )

    async def _record(
        self, claimed: Payment, state: PaymentState, transaction: str | None = None, reason: str | None = None
    ) -> Payment:
        """Record what became of a claimed payment. Raises PaymentInProgress if the claim has ended."""
        now = clock.utc_now()
        reason = None if reason is None else reason[:200]
        payment = replace(claimed, state=state, transaction_hash=transaction, reason=reason, updated_at=now)
        if not await self._db.write(lambda connection: store.record_outcome(connection, payment, now)):
            raise PaymentInProgress
        _log.info("payment.recorded", payment=payment.id, tenant=payment.tenant_id, state=state, reason=reason)
        return payment


def _claim(connection: Connection, verified: VerifiedPayment) -> Payment:
    """Claim the row of a payment, a new one only if the instruction is still as it was offered.

    Raises InstructionChanged, PaymentUsed, PaymentInProgress.
    """
    offer, transfer, now = verified.offer, verified.transfer, clock.utc_now()
    if verified.row is not None:
        if not store.claim_payment(connection, verified.row, now, now + _CLAIM):
            raise PaymentInProgress
        return replace(verified.row, state=PaymentState.SETTLING, attempt=verified.row.attempt + 1)
    tenants.lock_tenant(connection, offer.tenant_id)  # as updates of the instruction do
    current = find_for_content(connection, offer.tenant_id, Cid.parse(offer.cid))
    if current is None or (current.id, current.version) != (offer.instruction_id, offer.instruction_version):
        raise InstructionChanged
    payment = Payment(
        id=ids.new_id(),
        tenant_id=offer.tenant_id,
        instruction_id=offer.instruction_id,
        instruction_version=offer.instruction_version,
        cid=offer.cid,
        network=verified.terms.asset.network.caip2,
        asset=verified.terms.asset.address.lower(),
        payer=transfer.payer,
        nonce=transfer.nonce,
        pay_to=transfer.pay_to,
        amount=str(transfer.value),
        digest=transfer.digest,
        state=PaymentState.SETTLING,
        attempt=1,
        claimed_until=now + _CLAIM,
        created_at=now,
        updated_at=now,
    )
    if not store.insert_payment(connection, payment):
        raise PaymentUsed
    return payment
