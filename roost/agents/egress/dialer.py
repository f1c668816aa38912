"""Connections to the public internet and to nothing else: resolve once, check every answer, pin what was checked.

One address that is not admitted refuses the whole name: a name that mixes public and private answers is an attack or a
mistake. The connection goes to a checked address as a number, so a name that changes its answers gains nothing.
"""

import asyncio
import socket
from collections.abc import Callable, Sequence

from roost.agents.egress.errors import AddressRefused, ConnectTimeout, HostRefused, HostUnreachable, PortRefused
from roost.agents.egress.host_port import HostPort
from roost.agents.egress.policy import Address, EgressPolicy
from roost.agents.egress.resolver import NameResolver
from roost.drivers.runtime.contract import Stream

_STAGGER = 0.25  # seconds until the next address is tried beside the last one (RFC 8305 section 8)
_TRIED = 8  # addresses of one name


def is_own(address: Address) -> bool:
    """Whether the address is this machine's: only then does the kernel choose it as the source to reach itself."""
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:  # connecting a datagram socket sends nothing
            probe.connect((str(address), 9))
            return probe.getsockname()[0] == str(address)
    except OSError:
        return False


class PublicDialer:
    """`is_own` refuses the public addresses of the machine itself too: behind them are the services that trust it."""

    def __init__(
        self,
        policy: EgressPolicy,
        resolver: NameResolver,
        *,
        timeout: float = 10.0,
        is_own: Callable[[Address], bool] = is_own,
    ) -> None:
        self._policy = policy
        self._resolver = resolver
        self._timeout = timeout
        self._is_own = is_own

    async def dial(self, agent_id: str, target: HostPort) -> Stream:
        """Raises Refused, NameNotResolved, Unreachable, TooSlow."""
        addresses, port = await self.places(agent_id, target)
        try:
            async with asyncio.timeout(self._timeout):
                return await _connect(addresses, port, target)
        except TimeoutError:
            raise ConnectTimeout(target.host) from None

    async def places(self, agent_id: str, target: HostPort) -> tuple[Sequence[Address], int]:
        """The addresses, all of them admitted, and the port to connect to. Raises Refused, NameNotResolved, TooSlow."""
        if not self._policy.admits_host(target.host):
            raise HostRefused(target.host)
        if not self._policy.admits_port(target.port):
            raise PortRefused(target.host, target.port)
        answers, port = await self._found(agent_id, target)
        if not all(map(self._policy.admits_address, answers)):
            raise AddressRefused(target.host)
        chosen = answers[:_TRIED]
        if any(self._is_own(address) and not self._policy.opens(address) for address in chosen):
            raise AddressRefused(target.host)
        return chosen, port

    async def _found(self, agent_id: str, target: HostPort) -> tuple[Sequence[Address], int]:
        """Where the target is, not yet judged: a literal is itself, then the operator's word, then DNS."""
        if target.address:
            return [target.address], target.port
        if place := self._policy.hosts.get(target.host):
            address, port = place
            return [address], port or target.port
        return await self._resolver.resolve(agent_id, target.host), target.port


async def _connect(addresses: Sequence[Address], port: int, target: HostPort) -> Stream:
    """The first connection that stands. The next address is tried when the last one failed or is slow."""
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
    """A loser may have connected in the same moment as the winner."""
    if not attempt.cancelled() and attempt.exception() is None:
        attempt.result()[1].transport.abort()
