"""What gateways served, over HTTP, under the paths of old clients and new ones."""

from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Depends, Query

from roost.identity.door import AnalyticsReader
from roost.storage.analytics import wire
from roost.storage.analytics.service import Analytics
from roost.web.provide import provide
from roost.web.wire import Data

Service = Annotated[Analytics, Depends(provide(Analytics))]
router = APIRouter(prefix="/v3", tags=["analytics"])


@router.get("/analytics/gateways/top")
@router.get("/ipfs/gateway_analytics_top")
async def top_of_gateways(
    caller: AnalyticsReader, asked: Annotated[wire.ChosenTop, Query()], analytics: Service
) -> Data[Sequence[wire.TopItem]]:
    """What the tenant's gateways were asked for most, by CID, file name, user agent or referer."""
    found = await analytics.top(caller.tenant_id, asked.chosen(), asked.by, asked.order())
    return Data(data=wire.top(found))


@router.get("/analytics/gateways/time_series")
@router.get("/ipfs/gateway_analytics_time_series")
async def series_of_gateways(
    caller: AnalyticsReader, asked: Annotated[wire.ChosenSeries, Query()], analytics: Service
) -> Data[wire.SeriesRecord]:
    """How much the tenant's gateways served each day or week, the newest first."""
    found = await analytics.series(caller.tenant_id, asked.chosen(), asked.interval, asked.order())
    return Data(data=wire.series(*found))
