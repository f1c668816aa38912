"""Collection of garbage in repositories of sandboxes, beside which no push runs."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime

from roost.drivers.git import scripts
from roost.drivers.git.command import GitScript
from roost.drivers.git.contract import GarbageCollector, GitFailed, RepositoryUsage
from roost.drivers.git.runner import GitRunner, check_object_id, check_status, send_input

_SECONDS = 1800.0


class SandboxedCollector(GarbageCollector):
    """`lock` holds off commits and the application of pushes."""

    def __init__(self, runner: GitRunner, lock: Callable[[str], AbstractAsyncContextManager[None]]) -> None:
        self._runner = runner
        self._lock = lock
        self._running: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def wait(self, agent_id: str) -> None:
        """Wait for the end of a collection; none begins before the caller waits for something else."""
        async with self._running[agent_id]:
            pass

    async def measure_usage(self, agent_id: str) -> RepositoryUsage | None:
        return await asyncio.to_thread(self._runner.measure_usage, agent_id)

    async def collect_garbage(self, agent_id: str, kept: Sequence[str], unreachable_before: datetime) -> bool:
        async def names() -> AsyncGenerator[bytes]:
            for commit in kept:
                yield f"{check_object_id(commit)}\n".encode()

        script = GitScript(scripts.COLLECT, (f"{unreachable_before.timestamp():.0f}",), is_writable=True)
        async with self._running[agent_id]:
            if self._runner.writers[agent_id]:
                return False
            try:
                async with (
                    self._lock(agent_id),
                    asyncio.timeout(_SECONDS),
                    self._runner.run(agent_id, script) as process,
                ):
                    await send_input(process, names())
                    await check_status(process)
            except TimeoutError:
                raise GitFailed("The repository cannot be collected in time") from None
        return True
