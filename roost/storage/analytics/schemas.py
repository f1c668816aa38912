"""Shapes of questions about gateways and of their answers; what clients of either spelling send is taken."""

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from roost.storage.analytics import model, query
from roost.storage.analytics.model import LONGEST_AGENT, LONGEST_NAME, OTHER, UNKNOWN, HitCount
from roost.storage.analytics.query import (
    LIMIT,
    LIMIT_DEFAULT,
    AnalyticsDimension,
    AnalyticsInterval,
    AnalyticsMetric,
    AnalyticsOrder,
    DimensionCount,
    PeriodCount,
)
from roost.storage.unixfs.cid import Cid
from roost.web.schemas import StorageSchema, Text

_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)
_Value = Annotated[Text, Field(max_length=1024)]
_Status = Literal["200", "206", "301", "302", "304", "307", "308", "404", "499"]
_By = Annotated[AnalyticsDimension, BeforeValidator(lambda text: "referer" if text == "referrer" else text)]


def _day(text: object) -> object:
    """The day of a date or of a moment in UTC."""
    try:
        if isinstance(text, str) and _DATE.fullmatch(text):
            return date.fromisoformat(text)
        moment = datetime.fromisoformat(str(text))
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC).date()
    except (ValueError, OverflowError):
        raise ValueError("must be a date like 2026-01-31") from None


_Day = Annotated[date, BeforeValidator(_day)]


class AnalyticsParameters(StorageSchema):
    """Which answers are meant, and how the result is ordered."""

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
    limit: Annotated[int, Field(ge=1, le=LIMIT)] = LIMIT_DEFAULT

    def chosen(self) -> query.AnalyticsFilter:
        """Raises InvalidCid."""
        return query.AnalyticsFilter(
            gateway=self.gateway_domain or None,
            since=self.start_date,
            until=self.end_date,
            values=dict(self._values()),
            status=None if self.http_status_code is None else int(self.http_status_code),
        )

    def order(self) -> AnalyticsOrder:
        return AnalyticsOrder(self.sort_by, self.sort_order == "asc", self.limit)

    def _values(self) -> Iterator[tuple[AnalyticsDimension, Sequence[str]]]:
        if self.cid:
            yield AnalyticsDimension.CID, [OTHER] if self.cid == OTHER else Cid.parse_spellings(self.cid)
        if self.file_name:
            yield AnalyticsDimension.FILE_NAME, [model.cleaned(self.file_name, LONGEST_NAME)]
        if self.user_agent:
            yield AnalyticsDimension.USER_AGENT, [model.cleaned(self.user_agent, LONGEST_AGENT)]
        if referer := self.referer or self.referrer:
            yield AnalyticsDimension.REFERER, _referers(referer)
        if self.country:
            yield AnalyticsDimension.COUNTRY, [self.country]
        if self.region:
            yield AnalyticsDimension.REGION, [self.region]


class TopParameters(AnalyticsParameters):
    by: _By = AnalyticsDimension.CID


class SeriesParameters(AnalyticsParameters):
    """`by` is how clients say `date_interval`."""

    by: AnalyticsInterval | None = None
    date_interval: AnalyticsInterval | None = None

    @property
    def interval(self) -> AnalyticsInterval:
        return self.date_interval or self.by or AnalyticsInterval.DAY


class TopItem(StorageSchema):
    """`bandwidth` in bytes. `value` is `unknown` for what was not said, `other` for what is not told apart."""

    value: str
    requests: int
    bandwidth: int


class PeriodRecord(StorageSchema):
    """`period_start_time` is a date (UTC), of a week its Monday."""

    period_start_time: date
    requests: int
    bandwidth: int


class SeriesRecord(StorageSchema):
    """The totals are of all periods, also of those beyond `limit`."""

    total_requests: int
    total_bandwidth: int
    time_periods: Sequence[PeriodRecord]


def top(shares: Sequence[DimensionCount]) -> Sequence[TopItem]:
    return [TopItem(value=one.value, requests=one.tally.requests, bandwidth=one.tally.bandwidth) for one in shares]


def series(total: HitCount, periods: Sequence[PeriodCount]) -> SeriesRecord:
    return SeriesRecord(
        total_requests=total.requests,
        total_bandwidth=total.bandwidth,
        time_periods=[
            PeriodRecord(
                period_start_time=period.begin, requests=period.tally.requests, bandwidth=period.tally.bandwidth
            )
            for period in periods
        ],
    )


def _referers(text: str) -> Sequence[str]:
    """An address means its origin; a host, both that it may be."""
    if text in {UNKNOWN, OTHER}:
        return [text]
    return [model.origin(text)] if "://" in text else [f"https://{text.lower()}", f"http://{text.lower()}"]
