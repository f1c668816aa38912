"""Endpoints of gateway analytics."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import UTC, date, datetime
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Query
from pydantic import BeforeValidator, Field

from roost.core import clock
from roost.identity.authenticator import AnalyticsReader
from roost.storage.content.unixfs.cid import Cid
from roost.storage.gateways.analytics import model
from roost.storage.gateways.analytics.model import (
    AnalyticsDimension,
    AnalyticsInterval,
    AnalyticsMetric,
    AnalyticsQuery,
)
from roost.storage.gateways.analytics.service import AnalyticsService
from roost.web.schemas import DataEnvelope, StorageSchema, Text
from roost.web.service_registry import provide_service


def _parse_day(text: object) -> object:
    """Parse a date, or a time, whose day in UTC counts."""
    try:
        moment = datetime.fromisoformat(str(text))
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC).date()
    except (ValueError, OverflowError):
        raise ValueError("must be a date like 2026-01-31") from None


_Day = Annotated[date, BeforeValidator(_parse_day)]
_Value = Annotated[Text, Field(max_length=1024)]
_Status = Literal["200", "206", "301", "302", "304", "307", "308", "404", "499"]
# Some clients send `referrer`, as a parameter and as a value of `by`.
_Dimension = Annotated[AnalyticsDimension, BeforeValidator(lambda text: "referer" if text == "referrer" else text)]


class AnalyticsParameters(StorageSchema):
    """Filters and order of a query."""

    gateway_domain: Annotated[Text, Field(max_length=253)] | None = None
    start_date: _Day | None = None
    end_date: _Day | None = None
    cid: _Value | None = None
    file_name: _Value | None = None
    user_agent: _Value | None = None
    country: _Value | None = None
    region: _Value | None = None
    referer: _Value | None = None
    referrer: _Value | None = None
    http_status_code: _Status | None = None
    sort_by: AnalyticsMetric | None = None
    sort_order: Literal["asc", "desc"] = "desc"
    limit: Annotated[int, Field(ge=1, le=1000)] = 100

    def to_query(self) -> AnalyticsQuery:
        """Return the query. Raises InvalidCid, InvalidAnalyticsPeriod."""
        first, last = model.query_days(self.start_date, self.end_date, clock.utc_now().date())
        filters, ascending = dict(self._filters()), self.sort_order == "asc"
        return AnalyticsQuery(first, last, self.gateway_domain or None, filters, self.sort_by, ascending, self.limit)

    def _filters(self) -> Iterator[tuple[str, Sequence[str | int]]]:
        """Yield the columns to filter and their accepted values, spelled as they are stored."""
        if self.cid:
            yield "cid", [self.cid] if self.cid == model.OTHER else Cid.parse_spellings(self.cid)
        if self.file_name:
            yield "file_name", [model.clean_text(self.file_name, model.MAX_FILE_NAME)]
        if self.user_agent:
            yield "user_agent", [model.clean_text(self.user_agent, model.MAX_USER_AGENT)]
        if referer := self.referer or self.referrer:
            yield "referer", _possible_origins(referer)
        if self.country:
            yield "country", [self.country]
        if self.region:
            yield "region", [self.region]
        if self.http_status_code:
            yield "status", [int(self.http_status_code)]


class TopParameters(AnalyticsParameters):
    by: _Dimension = "cid"


class SeriesParameters(AnalyticsParameters):
    """`by` is another name of `date_interval`, which some clients use."""

    by: AnalyticsInterval | None = None
    date_interval: AnalyticsInterval | None = None

    @property
    def interval(self) -> AnalyticsInterval:
        return self.date_interval or self.by or "day"


class TopItem(StorageSchema):
    """`bandwidth` is in bytes. `value` is `unknown` for a missing attribute, `other` beyond the limits of rows."""

    value: str = Field(examples=["report.pdf"])
    requests: int
    bandwidth: int


class PeriodRecord(StorageSchema):
    """`period_start_time` is a date in UTC, for a week its Monday."""

    period_start_time: date
    requests: int
    bandwidth: int


class SeriesRecord(StorageSchema):
    """The totals include the periods beyond `limit`."""

    total_requests: int
    total_bandwidth: int
    time_periods: Sequence[PeriodRecord]


def _possible_origins(referer: str) -> Sequence[str]:
    """Return the origin of an address, or the origins that a bare host may have."""
    if referer in {model.UNKNOWN, model.OTHER}:
        return [referer]
    if "://" in referer:
        return [model.referer_origin(referer)]
    return [f"https://{referer.lower()}", f"http://{referer.lower()}"]


Service = Annotated[AnalyticsService, Depends(provide_service(AnalyticsService))]
router = APIRouter(prefix="/v3", tags=["analytics"])


@router.get("/analytics/gateways/top", responses={404: {}})
async def list_top_values(
    caller: AnalyticsReader, parameters: Annotated[TopParameters, Query()], analytics: Service
) -> DataEnvelope[Sequence[TopItem]]:
    """List the most requested CIDs, file names, user agents or referers of the tenant's gateways."""
    counts = await analytics.list_top_values(caller.tenant_id, parameters.to_query(), parameters.by)
    return DataEnvelope(data=[TopItem(value=value, **asdict(count)) for value, count in counts.items()])


@router.get("/analytics/gateways/time_series", responses={404: {}})
async def list_periods(
    caller: AnalyticsReader, parameters: Annotated[SeriesParameters, Query()], analytics: Service
) -> DataEnvelope[SeriesRecord]:
    """List the requests and bytes of the tenant's gateways by day or week, newest first."""
    total, counts = await analytics.list_periods(caller.tenant_id, parameters.to_query(), parameters.interval)
    periods = [PeriodRecord(period_start_time=start, **asdict(count)) for start, count in counts.items()]
    return DataEnvelope(
        data=SeriesRecord(total_requests=total.requests, total_bandwidth=total.bandwidth, time_periods=periods)
    )
