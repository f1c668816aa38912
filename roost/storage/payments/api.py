"""Payments over HTTP, for their sellers."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query

from roost.identity.authenticator import FilesReader
from roost.storage.payments import schemas
from roost.storage.payments.service import PaymentService
from roost.web.schemas import DataEnvelope
from roost.web.service_registry import provide_service

Service = Annotated[PaymentService, Depends(provide_service(PaymentService))]
router = APIRouter(prefix="/v3/x402/payments", tags=["payments"])


@router.get("")
async def list_payments(
    caller: FilesReader, parameters: Annotated[schemas.PaymentParameters, Query()], payments: Service
) -> DataEnvelope[schemas.PaymentList]:
    """List payments for your private files, newest first."""
    wanted, token = parameters.to_filter(), parameters.page_token
    page, following = await payments.list(caller.tenant_id, wanted, token, parameters.limit)
    return DataEnvelope(data=schemas.payment_list(page, following))


@router.get("/totals")
async def sum_payments(caller: FilesReader, payments: Service) -> DataEnvelope[schemas.PaymentTotals]:
    """Sum the settled payments by instruction and asset."""
    return DataEnvelope(data=schemas.payment_totals(await payments.totals(caller.tenant_id)))
