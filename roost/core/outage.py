"""The log of a part that the server depends on and that can be away: said when it goes, each minute, when it is back.

What fails because of it is not logged one by one (`log.configure_logging`).
"""

from threading import Lock

from roost.core import clock, log

_REPEAT_SECONDS = 60.0

_log = log.get_logger("outage")


class Outage:
    """Outage of one part of the deployment, reported from any thread."""

    def __init__(self, part: str) -> None:
        self._part = part
        self._lock = Lock()
        self._is_away = False
        self._since = self._logged = 0.0
        self._failures = 0

    def report(self, reason: str) -> None:
        """Count a failure of the part; log the first one, and one a minute."""
        now = clock.monotonic_seconds()
        with self._lock:
            self._failures += 1
            if self._is_away and now - self._logged < _REPEAT_SECONDS:
                return
            self._since = self._since if self._is_away else now
            self._is_away, self._logged = True, now
            seconds, failures = round(now - self._since), self._failures
        _log.error("outage.reported", part=self._part, reason=reason, seconds=seconds, failures=failures)

    def end(self) -> None:
        """Log that the part is back, if it was away; called after each success, so that nothing else is done."""
        if not self._is_away:
            return
        with self._lock:
            was_away, self._is_away = self._is_away, False
            seconds, failures = round(clock.monotonic_seconds() - self._since), self._failures
            self._failures = 0
        if was_away:  # another thread may have said it
            _log.warning("outage.ended", part=self._part, seconds=seconds, failures=failures)
