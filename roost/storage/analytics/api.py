"""What gateways served, over HTTP, under the paths of old clients and new ones."""

from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Depends, Query

from roost.identity.authenticator import AnalyticsReader
from roost.storage.analytics import schemas
from roost.storage.analytics.service import AnalyticsService
from roost.web.schemas import DataEnvelope
from roost.web.service_registry import provide_service

Service = Annotated[AnalyticsService, Depends(provide_service(AnalyticsService))]
router = APIRouter(prefix="/v3", tags=["analytics"])


@router.get("/analytics/gateways/top")
async def top_of_gateways(
    caller: AnalyticsReader, asked: Annotated[schemas.TopParameters, Query()], analytics: Service
) -> DataEnvelope[Sequence[schemas.TopItem]]:
    """What the tenant's gateways were asked for most, by CID, file name, user agent or referer."""
    found = await analytics.top(caller.tenant_id, asked.chosen(), asked.by, asked.order())
    return DataEnvelope(data=schemas.top(found))


@router.get("/analytics/gateways/time_series")
async def series_of_gateways(
    caller: AnalyticsReader, asked: Annotated[schemas.SeriesParameters, Query()], analytics: Service
) -> DataEnvelope[schemas.SeriesRecord]:
    """How much the tenant's gateways served each day or week, the newest first."""
    found = await analytics.series(caller.tenant_id, asked.chosen(), asked.interval, asked.order())
    return DataEnvelope(data=schemas.series(*found))
