"""Endpoints of gateway analytics."""

from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Depends, Query

from roost.identity.authenticator import AnalyticsReader
from roost.storage.gateways.analytics import schemas
from roost.storage.gateways.analytics.service import AnalyticsService
from roost.web.schemas import DataEnvelope
from roost.web.service_registry import provide_service

Service = Annotated[AnalyticsService, Depends(provide_service(AnalyticsService))]
router = APIRouter(prefix="/v3", tags=["analytics"])


@router.get("/analytics/gateways/top", responses={404: {}})
async def list_top_values(
    caller: AnalyticsReader, parameters: Annotated[schemas.TopParameters, Query()], analytics: Service
) -> DataEnvelope[Sequence[schemas.TopItem]]:
    """List the most requested CIDs, file names, user agents or referers of the tenant's gateways."""
    counts = await analytics.list_top_values(caller.tenant_id, parameters.to_query(), parameters.by)
    return DataEnvelope(data=schemas.top_items(counts))


@router.get("/analytics/gateways/time_series", responses={404: {}})
async def list_periods(
    caller: AnalyticsReader, parameters: Annotated[schemas.SeriesParameters, Query()], analytics: Service
) -> DataEnvelope[schemas.SeriesRecord]:
    """List the requests and bytes of the tenant's gateways by day or week, newest first."""
    counts = await analytics.list_periods(caller.tenant_id, parameters.to_query(), parameters.interval)
    return DataEnvelope(data=schemas.series_record(*counts))
