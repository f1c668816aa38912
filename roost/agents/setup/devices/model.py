"""Results of device approvals, and the format of request ids."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

_REQUEST_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,127}")


@dataclass(frozen=True)
class FailedDeviceApproval:
    request_id: str
    error: str


@dataclass(frozen=True)
class DeviceApprovals:
    """Approved and failed requests of those that were pending at the call."""

    approved: Sequence[str]
    failed: Sequence[FailedDeviceApproval]


def is_request_id(text: str) -> bool:
    """Return whether the text has the format of a request id; other texts are never sent to an engine."""
    return _REQUEST_ID.fullmatch(text) is not None
