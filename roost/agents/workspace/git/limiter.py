"""Limit of concurrent Git commands: fair between tenants, with a short wait instead of a refusal."""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from roost.agents.workspace.git.errors import TooManyGitRequests

_RETRY_SECONDS = 5


class GitCommandLimiter:
    """Slots for commands; a tenant may hold some of them. Times are in seconds."""

    def __init__(self, total: int = 32, each: int = 8, wait: float = 20.0) -> None:
        self._total = total
        self._each = each
        self._wait = wait
        self._running = Counter[str]()
        self._released = asyncio.Condition()

    @asynccontextmanager
    async def acquire(self, tenant_id: str) -> AsyncGenerator[None]:
        """Hold a slot. Raises TooManyGitRequests if none becomes free in time."""
        try:
            async with asyncio.timeout(self._wait), self._released:
                await self._released.wait_for(lambda: self._is_free(tenant_id))
                self._running[tenant_id] += 1
        except TimeoutError:
            raise TooManyGitRequests(retry_after=_RETRY_SECONDS) from None
        try:
            yield
        finally:
            self._running[tenant_id] -= 1
            if not self._running[tenant_id]:
                del self._running[tenant_id]
            async with self._released:
                self._released.notify_all()

    def _is_free(self, tenant_id: str) -> bool:
        return self._running[tenant_id] < self._each and self._running.total() < self._total
