"""Latest events of one tenant in memory, read once for all of its streams."""

import asyncio
from collections import deque
from collections.abc import Sequence
from contextlib import suppress

from roost.events.model import Event, last_of

KEPT_EVENTS = 256


class EventFeed:
    """Events after the number at which the feed began, the last `KEPT_EVENTS` of them.

    A stream holds only the number of its last event, so a slow one costs no memory. One that is further behind reads
    the database.
    """

    def __init__(self) -> None:
        self.streams = 0
        self.last: int | None = None
        """Number of the last event; None before the first look at the database."""
        self._events = deque[Event](maxlen=KEPT_EVENTS)
        self._advanced = asyncio.Event()

    def advance(self, last: int, events: Sequence[Event]) -> None:
        """Append the events that follow the last one; the first call begins the feed at `last`."""
        if self.last is None:
            self.last = last
        self._events.extend(events)
        self.last = last_of(events, self.last)
        self._advanced.set()
        self._advanced.clear()

    def list_after(self, number: int) -> Sequence[Event] | None:
        """List the events after a number; None if some of them are not in memory."""
        if self.last is None or number < self.last - len(self._events):
            return None
        missing = max(self.last - number, 0)
        return list(self._events)[len(self._events) - missing :]

    async def wait(self, number: int, seconds: float) -> None:
        """Wait until there is an event after a number, or for `seconds`."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self.last is None or self.last <= number:
                    await self._advanced.wait()
