"""Names to addresses, through the operating system's resolver, in bounded time and without one agent starving another.

Look-ups run in threads of their own: the system's resolver can hang for half a minute on a name server that an agent
controls, and must neither block the event loop nor take the threads that the rest of the server works with.
"""

import asyncio
import socket
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from ipaddress import ip_address
from typing import Any, Protocol
from weakref import WeakValueDictionary

from roost.agents.egress.errors import ConnectTimeout, NameNotResolved
from roost.agents.egress.policy import Address


class NameResolver(Protocol):
    async def resolve(self, agent_id: str, host: str) -> Sequence[Address]:
        """Every address of the name, best first, on behalf of an agent. Raises NameNotResolved, TooSlow."""
        ...


class SystemResolver:
    """`lookup` answers like `socket.getaddrinfo`. A look-up that nobody waits for still counts until it has ended."""

    def __init__(
        self,
        *,
        threads: int = 32,
        per_agent: int = 4,
        timeout: float = 10.0,
        lookup: Callable[..., Sequence[tuple[Any, ...]]] = socket.getaddrinfo,
    ) -> None:
        self._pool = ThreadPoolExecutor(threads, "resolver")
        self._per_agent = per_agent
        self._timeout = timeout
        self._lookup = lookup
        self._lanes: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()

    async def resolve(self, agent_id: str, host: str) -> Sequence[Address]:
        lane = self._lanes.setdefault(agent_id, asyncio.Semaphore(self._per_agent))
        try:
            async with asyncio.timeout(self._timeout):
                await lane.acquire()
                answers = await asyncio.shield(self._start(host, lane))
        except TimeoutError:
            raise ConnectTimeout(host) from None
        except OSError:
            raise NameNotResolved(host) from None
        return list(dict.fromkeys(ip_address(answer[4][0]) for answer in answers))

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _start(self, host: str, lane: asyncio.Semaphore) -> asyncio.Future[Sequence[tuple[Any, ...]]]:
        def ended(done: asyncio.Future[Sequence[tuple[Any, ...]]]) -> None:
            lane.release()
            if not done.cancelled():
                done.exception()  # seen: nobody may be waiting for it any more

        # As bytes, for a str would go through Python's own IDNA encoder first.
        found = asyncio.get_running_loop().run_in_executor(
            self._pool, self._lookup, host.encode("ascii"), None, 0, socket.SOCK_STREAM
        )
        found.add_done_callback(ended)
        return found
