"""Daily counts of gateway responses, and queries over them. Pure.

Visitors send hostile input, so texts are cut and cleaned and the number of rows is bounded. Addresses of visitors are
not kept, and of a referer only the origin, because the rest may hold tokens.
"""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from functools import lru_cache
from typing import Literal, NamedTuple, Self

from roost.core.problem import InvalidInput
from roost.storage.content.model import ContentNetwork


class InvalidAnalyticsPeriod(InvalidInput):
    message = "start_date must not be after end_date"


UNKNOWN, OTHER = "unknown", "other"
"""The value of a missing attribute, and of an attribute beyond the row limits."""
DETAILED_ROWS, CID_ROWS = 5_000, 5_000
"""Rows of a tenant and a day with all attributes, and after these, rows with the CID alone."""
MAX_FILE_NAME, MAX_USER_AGENT, MAX_REFERER = 255, 200, 255
_DEFAULT_DAYS = 30

AnalyticsDimension = Literal["cid", "file_name", "user_agent", "referer", "country", "region"]
"""Attribute by which requests are grouped. Countries and regions are always `unknown`."""
AnalyticsMetric = Literal["requests", "bandwidth"]
AnalyticsInterval = Literal["day", "week"]

_ORIGIN = re.compile(r"[a-z][a-z0-9+.-]{0,19}://[a-z0-9._~:\[\]-]{1,230}", re.ASCII)


class Hit(NamedTuple):
    """Attributes of a gateway response; equal hits are counted together.

    `day` is an ISO date in UTC. If the URL had no file name, `network` is where the tenant's own file may have one.
    """

    tenant_id: str
    day: str
    gateway_id: str
    cid: str
    file_name: str
    status: int
    user_agent: str
    referer: str
    network: ContentNetwork | None = None

    @property
    def digest(self) -> bytes:
        """Key of the row within its tenant and day."""
        attributes = (self.gateway_id, self.cid, self.file_name, str(self.status), self.user_agent, self.referer)
        return hashlib.sha256("\0".join(attributes).encode()).digest()[:16]

    def with_cid_only(self) -> Self:
        return self._replace(file_name=OTHER, user_agent=OTHER, referer=OTHER, network=None)

    def with_gateway_only(self) -> Self:
        return self.with_cid_only()._replace(cid=OTHER)


@dataclass(slots=True)
class HitCount:
    """Number of responses and `bandwidth`, the bytes of body that were sent."""

    requests: int = 0
    bandwidth: int = 0

    def add(self, other: "HitCount") -> None:
        self.requests += other.requests
        self.bandwidth += other.bandwidth


@dataclass(frozen=True)
class AnalyticsQuery:
    """Days (both included), filters and order of a result.

    `gateway` is a name or an address, `filters` are the accepted values by column.
    """

    first_day: date
    last_day: date
    gateway: str | None
    filters: Mapping[str, Sequence[str | int]]
    sort_by: AnalyticsMetric | None
    ascending: bool
    limit: int


def query_days(start: date | None, end: date | None, today: date) -> tuple[date, date]:
    """Return the first and the last day of a query, by default the last 30 days. Raises InvalidAnalyticsPeriod."""
    last = end or max(today, start or today)
    first = start or last - timedelta(days=min(_DEFAULT_DAYS - 1, (last - date.min).days))
    if first > last:
        raise InvalidAnalyticsPeriod
    return first, last


def period_start(day: date, interval: AnalyticsInterval) -> date:
    """Return the first day of a period; weeks start on Monday."""
    return day if interval == "day" else day - timedelta(days=day.weekday())


def referer_origin(referer: str) -> str:
    """Return scheme and host of a referer, or an empty text if it has none."""
    origin = "/".join(referer[: MAX_REFERER * 2].split("/", 3)[:3]).lower()
    return origin if _ORIGIN.fullmatch(origin) else ""


def clean_text(text: str, limit: int) -> str:
    """Cut a text and remove what a database or a terminal may not take; return `unknown` if nothing is left."""
    return _clean(text[:limit])


@lru_cache(maxsize=1024)  # most visitors have one of few user agents
def _clean(text: str) -> str:
    return "".join(filter(str.isprintable, text)).strip() or UNKNOWN


def limit_rows(counts: Mapping[Hit, HitCount], stored: set[bytes]) -> Mapping[Hit, HitCount]:
    """Merge hits of a tenant and a day that are beyond the row limits, those with the fewest requests first.

    `stored` has the digests of the stored rows; those of new rows are added.
    """
    limited: dict[Hit, HitCount] = {}
    for hit, count in sorted(counts.items(), key=lambda item: -item[1].requests):
        limits = {hit: DETAILED_ROWS, hit.with_cid_only(): DETAILED_ROWS + CID_ROWS}
        row = next((row for row, limit in limits.items() if row.digest in stored or len(stored) < limit), None)
        row = row or hit.with_gateway_only()
        stored.add(row.digest)
        limited.setdefault(row, HitCount()).add(count)
    return limited
