"""Schemas of payments."""

from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

from roost.storage.payments.model import PAGE_DEFAULT, PAGE_LIMIT, Payment, PaymentFilter, PaymentState, PaymentTotal
from roost.web.schemas import Moment, StorageSchema, Text


class PaymentParameters(StorageSchema):
    """Filter and page of a list."""

    instruction: Annotated[Text | None, Field(max_length=64)] = None
    cid: Annotated[Text | None, Field(max_length=512)] = None
    state: PaymentState | None = None
    limit: Annotated[int, Field(ge=1, le=PAGE_LIMIT)] = PAGE_DEFAULT
    page_token: Annotated[str | None, Field(alias="pageToken", max_length=200)] = None

    def to_filter(self) -> PaymentFilter:
        return PaymentFilter(self.instruction, self.cid, self.state)


class PaymentRecord(StorageSchema):
    """A payment. amount: in the smallest units of the asset. reason: why it is refused or unknown."""

    id: str
    payment_instruction_id: str
    payment_instruction_version: int
    cid: str
    network: str
    asset: str
    payer: str
    pay_to: str
    amount: str
    state: PaymentState
    transaction: str | None
    reason: str | None
    created_at: Moment
    updated_at: Moment


class PaymentList(StorageSchema):
    """`next_page_token` is empty on the last page."""

    payments: Sequence[PaymentRecord]
    next_page_token: str = ""


class PaymentTotalRecord(StorageSchema):
    """Settled payments of an instruction in one asset. amount: the sum, in its smallest units."""

    payment_instruction_id: str
    network: str
    asset: str
    count: int
    amount: str


class PaymentTotals(StorageSchema):
    totals: Sequence[PaymentTotalRecord]


def payment_list(payments: Sequence[Payment], token: str | None) -> PaymentList:
    return PaymentList(payments=[_payment_record(payment) for payment in payments], next_page_token=token or "")


def payment_totals(totals: Sequence[PaymentTotal]) -> PaymentTotals:
    return PaymentTotals(totals=[_total_record(total) for total in totals])


def _payment_record(payment: Payment) -> PaymentRecord:
    return PaymentRecord(
        id=payment.id,
        payment_instruction_id=payment.instruction_id,
        payment_instruction_version=payment.instruction_version,
        cid=payment.cid,
        network=payment.network,
        asset=payment.asset,
        payer=payment.payer,
        pay_to=payment.pay_to,
        amount=payment.amount,
        state=payment.state,
        transaction=payment.transaction_hash,
        reason=payment.reason,
        created_at=payment.created_at,
        updated_at=payment.updated_at,
    )


def _total_record(total: PaymentTotal) -> PaymentTotalRecord:
    return PaymentTotalRecord(
        payment_instruction_id=total.instruction_id,
        network=total.network,
        asset=total.asset,
        count=total.count,
        amount=str(total.amount),
    )
