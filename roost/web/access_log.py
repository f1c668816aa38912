"""Access record of a finished request, for the log and the metrics.

It never holds a query, a header or a body; the path is that of the route where there is one.
"""

from collections.abc import Callable
from dataclasses import dataclass

from roost.core import log

_log = log.get_logger("access")
_LONGEST_PATH = 256


@dataclass(slots=True)  # to freeze it would double the time to make one
class AccessRecord:
    """One request. `status` 499: the client left before an answer began. Sizes are of bodies, in bytes."""

    method: str
    path: str
    status: int
    seconds: float
    received: int
    sent: int
    request_id: str
    agent_id: str | None = None


Observe = Callable[[AccessRecord], None]
"""Told of each request; quick, and does not raise."""


def write_access_log(record: AccessRecord) -> None:
    """Write one line of the access log."""
    _log.info(
        "request.finished",
        method=record.method,
        path=record.path[:_LONGEST_PATH],
        status=record.status,
        received=record.received,
        sent=record.sent,
        request_id=record.request_id,
        agent_id=record.agent_id,
        ms=round(record.seconds * 1000, 1),
    )
