"""Resolve names through the operating system in bounded time, without one subject starving another.

Lookups run in a thread pool of their own: the system's resolver can hang for half a minute on a name server that an
agent controls, and must neither block the event loop nor take the threads that the rest of the server works with.
"""

import asyncio
import socket
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from ipaddress import ip_address
from typing import Any, Protocol
from weakref import WeakValueDictionary

from roost.net.addresses import Address
from roost.net.errors import ConnectTimeout, NameNotResolved


class NameResolver(Protocol):
    async def resolve(self, subject: str, host: str) -> Sequence[Address]:
        """Return every address of the name, best first. `subject` is the agent or tenant to whom the lookup is charged.

        Raises NameNotResolved, ConnectTimeout.
        """
        ...


class SystemResolver:
    """Resolver with a limit of concurrent lookups per subject. An abandoned lookup counts until it has ended."""

    def __init__(
        self,
        *,
        threads: int = 32,
        per_subject: int = 4,
        timeout: float = 10.0,
        lookup: Callable[..., Sequence[tuple[Any, ...]]] = socket.getaddrinfo,
    ) -> None:
        self._pool = ThreadPoolExecutor(threads, "resolver")
        self._per_subject = per_subject
        self._timeout = timeout
        self._lookup = lookup
        self._limits: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()

    async def resolve(self, subject: str, host: str) -> Sequence[Address]:
        limit = self._limits.setdefault(subject, asyncio.Semaphore(self._per_subject))
        try:
            async with asyncio.timeout(self._timeout):
                await limit.acquire()
                answers = await asyncio.shield(self._start(host, limit))
        except TimeoutError:
            raise ConnectTimeout(host) from None
        except OSError:
            raise NameNotResolved(host) from None
        return list(dict.fromkeys(ip_address(answer[4][0]) for answer in answers))

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _start(self, host: str, limit: asyncio.Semaphore) -> asyncio.Future[Sequence[tuple[Any, ...]]]:
        def release(done: asyncio.Future[Sequence[tuple[Any, ...]]]) -> None:
            limit.release()
            if not done.cancelled():
                done.exception()  # retrieved, because the caller may have given up

        # As bytes, for a str would go through Python's own IDNA encoder first.
        found = asyncio.get_running_loop().run_in_executor(
            self._pool, self._lookup, host.encode("ascii"), None, 0, socket.SOCK_STREAM
        )
        found.add_done_callback(release)
        return found
