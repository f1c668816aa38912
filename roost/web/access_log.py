"""Access record of a finished request, for the log and the metrics, and its id.

The record never contains a query, a header or a body; the path is the route's template if there is one.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

from roost.core import ids, log

_log = log.get_logger("access")
_LONGEST_PATH = 256
_SANE_ID = re.compile(r"[A-Za-z0-9._-]{1,64}", re.ASCII)


@dataclass(slots=True)  # frozen ones take twice as long to create
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
"""A function that receives the record of each request; it is fast and does not raise."""


def write_access_log(record: AccessRecord) -> None:
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


def request_id(inbound: str | None) -> str:
    """Return `inbound`, the value of `X-Request-Id`, if it is valid, else a new id."""
    return inbound if inbound is not None and _SANE_ID.fullmatch(inbound) else ids.new_id()
