"""Connect to the public internet and to nothing else: resolve once, check every answer, connect to a checked address.

One address that is not admitted refuses the whole name: a name that mixes public and private answers is an attack or a
mistake. The connection goes to a checked address as a number, so a name that changes its answers gains nothing.
"""

import asyncio
import socket
from collections.abc import Callable, Sequence

from roost.core.machine.unix_socket import Stream
from roost.net.addresses import Address
from roost.net.errors import AddressRefused, ConnectTimeout, HostUnreachable
from roost.net.host_port import HostPort
from roost.net.policy import EgressPolicy
from roost.net.resolver import NameResolver

_STAGGER = 0.25  # seconds until the next address is tried beside the last one (RFC 8305 section 8)
_MAX_ATTEMPTS = 8  # addresses of one name


def is_own_address(address: Address) -> bool:
    """Tell whether the address is this machine's: only then does the kernel choose it as the source to reach itself."""
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:  # connecting a datagram socket sends nothing
            probe.connect((str(address), 9))
            return probe.getsockname()[0] == str(address)
    except OSError:
        return False


class PublicDialer:
    """Opens connections within a policy. `is_own` excludes this machine's public addresses: its services trust it."""

    def __init__(
        self,
        policy: EgressPolicy,
        resolver: NameResolver,
        *,
        timeout: float = 10.0,
        is_own: Callable[[Address], bool] = is_own_address,
    ) -> None:
        self.policy = policy
        self._resolver = resolver
        self._timeout = timeout
        self._is_own = is_own

    async def dial(self, subject: str, target: HostPort) -> Stream:
        """Connect. Raises EgressRefused, NameNotResolved, HostUnreachable, ConnectTimeout."""
        addresses, port = await self.resolve(subject, target)
        try:
            async with asyncio.timeout(self._timeout):
                return await _connect(addresses, port, target)
        except TimeoutError:
            raise ConnectTimeout(target.host) from None

    async def resolve(self, subject: str, target: HostPort) -> tuple[Sequence[Address], int]:
        """Return admitted addresses and the port to connect to.

        Raises EgressRefused, NameNotResolved, ConnectTimeout.
        """
        self.policy.check_target(target)
        answers, port = await self._lookup(subject, target)
        if not all(map(self.policy.admits_address, answers)):
            raise AddressRefused(target.host)
        chosen = answers[:_MAX_ATTEMPTS]
        if any(self._is_own(address) and not self.policy.opens(address) for address in chosen):
            raise AddressRefused(target.host)
        return chosen, port

    async def _lookup(self, subject: str, target: HostPort) -> tuple[Sequence[Address], int]:
        """Return unchecked addresses: of a literal, of the operator's override, or from DNS."""
        if target.address:
            return [target.address], target.port
        if override := self.policy.hosts.get(target.host):
            address, port = override
            return [address], port or target.port
        return await self._resolver.resolve(subject, target.host), target.port


async def _connect(addresses: Sequence[Address], port: int, target: HostPort) -> Stream:
    """Return the first connection that succeeds; try the next address when the last one failed or is slow."""
    waiting = list(addresses)
    attempts: list[asyncio.Task[Stream]] = []
    running: set[asyncio.Task[Stream]] = set()
    winner: asyncio.Task[Stream] | None = None
    try:
        while winner is None and (waiting or running):
            if waiting:
                attempts.append(asyncio.create_task(_open(waiting.pop(0), port)))
                running.add(attempts[-1])
            done, running = await asyncio.wait(
                running, timeout=_STAGGER if waiting else None, return_when=asyncio.FIRST_COMPLETED
            )
            winner = next((task for task in done if task.exception() is None), None)
    finally:
        for task in attempts:
            if task is not winner:
                task.cancel()
                task.add_done_callback(_discard)
    if winner is None:
        raise HostUnreachable(target.host)
    return winner.result()


async def _open(address: Address, port: int) -> Stream:
    return await asyncio.open_connection(str(address), port, flags=socket.AI_NUMERICHOST)


def _discard(attempt: asyncio.Task[Stream]) -> None:
    """Close a connection that succeeded in the same moment as the winner."""
    if not attempt.cancelled() and attempt.exception() is None:
        attempt.result()[1].transport.abort()
