"""What keeps failing: since when, how often and why, until work of that kind and subject succeeds (decision 0047).

Operations are deleted some days after their end, and a periodic one is new each time; a fault is what its owner sees.
"""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True)
class OperationFault:
    """Operations of a kind that ended in failures, none in a success; times of the first and the last one."""

    kind: str
    failing_since: datetime
    failed_at: datetime
    failures: int
    reason: str
