"""Payments over HTTP, for their sellers."""

from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query
from pydantic import Field

from roost.identity.authenticator import FilesReader
from roost.storage.payments.model import PAGE_DEFAULT, PAGE_LIMIT, Payment, PaymentFilter, PaymentState, PaymentTotal
from roost.storage.payments.service import PaymentService
from roost.web.schemas import DataEnvelope, Moment, StorageSchema, Text
from roost.web.service_registry import provide_service


class PaymentParameters(StorageSchema):
    """Filter and page of a list."""

    instruction: Annotated[Text | None, Field(max_length=64)] = None
    cid: Annotated[Text | None, Field(max_length=512)] = None
    state: PaymentState | None = None
    limit: Annotated[int, Field(ge=1, le=PAGE_LIMIT)] = PAGE_DEFAULT
    page_token: Annotated[str | None, Field(alias="pageToken", max_length=200)] = None


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


def _payment_record(payment: Payment) -> PaymentRecord:
    return PaymentRecord(
        **vars(payment),
        payment_instruction_id=payment.instruction_id,
        payment_instruction_version=payment.instruction_version,
        transaction=payment.transaction_hash,
    )


def _total_record(total: PaymentTotal) -> PaymentTotalRecord:
    fields: dict[str, Any] = {**vars(total), "amount": str(total.amount)}
    return PaymentTotalRecord(**fields, payment_instruction_id=total.instruction_id)


Service = Annotated[PaymentService, Depends(provide_service(PaymentService))]
router = APIRouter(prefix="/v3/x402/payments", tags=["payments"])


@router.get("")
async def list_payments(
    caller: FilesReader, parameters: Annotated[PaymentParameters, Query()], payments: Service
) -> DataEnvelope[PaymentList]:
    """List payments for your private files, newest first."""
    wanted = PaymentFilter(parameters.instruction, parameters.cid, parameters.state)
    page, following = await payments.list(caller.tenant_id, wanted, parameters.page_token, parameters.limit)
    records = [_payment_record(payment) for payment in page]
    return DataEnvelope(data=PaymentList(payments=records, next_page_token=following or ""))


@router.get("/totals")
async def sum_payments(caller: FilesReader, payments: Service) -> DataEnvelope[PaymentTotals]:
    """Sum the settled payments by instruction and asset."""
    totals = [_total_record(total) for total in await payments.totals(caller.tenant_id)]
    return DataEnvelope(data=PaymentTotals(totals=totals))
