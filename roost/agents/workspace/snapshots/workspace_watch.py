"""Watch of one workspace, which can prove that nothing has changed since it was last committed."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing

from roost.warden_client.tree import WardenTree

_CHECK_SECONDS = 5.0


class WorkspaceWatch:
    """Counts changes. `on_change` is called for each, and when the watch begins: what was before is not known.

    committed: number of changes before the workspace was last read and committed, None if it was not since then.
    """

    def __init__(self, on_change: Callable[[], None]) -> None:
        self._on_change = on_change
        self._changes = 0
        self._checks = asyncio.Queue[None]()
        self._waiting: deque[asyncio.Future[int]] | None = None
        self.committed: int | None = None

    async def run(self, tree: WardenTree) -> None:
        """Watch until the container is gone. Raises as `WardenTree.watch`."""
        try:
            async with aclosing(tree.watch(checks=self._list_checks())) as items:
                async for changed in items:
                    if changed.paths or not changed.is_complete or self._waiting is None:
                        self._waiting = self._waiting or deque()
                        self._changes += 1
                        self._on_change()
                    elif self._waiting:
                        _settle(self._waiting.popleft(), self._changes)
        finally:
            waiting, self._waiting = self._waiting or (), None
            for check in waiting:
                check.cancel()

    async def count_changes(self) -> int | None:
        """Return the number of changes until now, None if that is not known."""
        if self._waiting is None:
            return None
        check = asyncio.get_running_loop().create_future()
        self._waiting.append(check)
        self._checks.put_nowait(None)
        done, _ = await asyncio.wait([check], timeout=_CHECK_SECONDS)
        return check.result() if done and not check.cancelled() else None

    async def _list_checks(self) -> AsyncIterator[None]:
        while True:
            yield await self._checks.get()


def _settle(check: asyncio.Future[int], changes: int) -> None:
    if not check.done():
        check.set_result(changes)
