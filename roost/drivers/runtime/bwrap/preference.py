"""Containers that requests wait for, which get more processor time than those that work by themselves.

Agents share what the server leaves. If all of them compute without a pause, each gets an equal part of it, and a
request to one would wait for all others. A container is preferred for a fixed time after each request, so that an agent
cannot prolong it, and only against its siblings.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress

from roost.drivers.runtime.bwrap.start import get_controllers

PREFERRED_WEIGHT = 20
_SECONDS = 10.0


class PreferredContainers:
    def __init__(self, group_name: Callable[[str], str], seconds: float = _SECONDS) -> None:
        self._group_name = group_name
        self._seconds = seconds
        self._ends: dict[str, float] = {}

    def add(self, agent_id: str) -> None:
        """Prefer a container from now on; a file is written only if it was not preferred before."""
        loop = asyncio.get_running_loop()
        is_preferred = agent_id in self._ends
        self._ends[agent_id] = loop.time() + self._seconds
        if not is_preferred:
            self._set_weight(agent_id, PREFERRED_WEIGHT)
            loop.call_later(self._seconds, self._check_end, agent_id)

    def discard(self, agent_id: str) -> None:
        """Forget a container that has ended."""
        self._ends.pop(agent_id, None)

    def _check_end(self, agent_id: str) -> None:
        if agent_id not in self._ends:
            return
        loop = asyncio.get_running_loop()
        if (remaining := self._ends[agent_id] - loop.time()) > 0:
            loop.call_later(remaining, self._check_end, agent_id)
        else:
            del self._ends[agent_id]
            self._set_weight(agent_id, 1)

    def _set_weight(self, agent_id: str, factor: int) -> None:
        with suppress(OSError):  # the container has just ended
            get_controllers().set_weight(self._group_name(agent_id), factor)
