"""What was asked of devices and what came of it."""

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
    """Which of the requests that were pending at the call are approved now, and which are not."""

    approved: Sequence[str]
    failed: Sequence[FailedDeviceApproval]


def is_request_id(text: str) -> bool:
    """Whether an engine may have given such an id; nothing else is sent to one."""
    return _REQUEST_ID.fullmatch(text) is not None
