"""Bridges of a runtime's containers: opens each one when it is needed, and again when it breaks."""

import asyncio
from collections.abc import Awaitable, Callable, Collection
from contextlib import suppress
from weakref import WeakValueDictionary

from roost.core import log
from roost.core.machine.unix_socket import Stream, StreamHandler
from roost.core.periodic import Backoff
from roost.core.problem import Problem
from roost.drivers.runtime.bridge import Bridge
from roost.drivers.runtime.contract import RelayListener
from roost.warden_client.errors import ContainerNotRunning

_OPEN_SECONDS, _PING_SECONDS, _ANSWER_SECONDS = 5.0, 10.0, 10.0
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 5.0
_AT_ONCE = 256
"""Bridges that are opened at a time: of thousands, as after a start of the server, none would be open in time."""

OpenCarrier = Callable[[str, Bridge], Awaitable[None]]
"""Makes a bridge the protocol of a new carrier to an agent's container. Raises ContainerNotRunning and OSError."""

_log = log.get_logger("bridge")


class Bridges:
    """The bridges of one runtime, by agent."""

    def __init__(self, open_carrier: OpenCarrier) -> None:
        self._open_carrier = open_carrier
        self._bridges: dict[str, Bridge] = {}
        self._handlers: dict[str, dict[str, StreamHandler]] = {}
        """Handlers of open relays, by agent and relay."""
        self._keepers: dict[str, asyncio.Task[None]] = {}
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._slots = asyncio.Semaphore(_AT_ONCE)

    async def connect(self, agent_id: str) -> Stream:
        """Open a stream to the warden. Raises ContainerNotRunning."""
        try:
            async with asyncio.timeout(_OPEN_SECONDS):
                return (await self._require(agent_id)).open()
        except OSError:  # includes TimeoutError
            raise ContainerNotRunning from None

    async def listen(self, agent_id: str, relay: str, handler: StreamHandler) -> RelayListener:
        """Accept streams that the container opens on a relay, from now on if it runs."""
        self._handlers.setdefault(agent_id, {})[relay] = handler
        with suppress(ContainerNotRunning):
            (await self.connect(agent_id))[1].close()
            self.keep(agent_id)
        return _Listener(self._handlers, (agent_id, relay), handler)

    def keep(self, agent_id: str) -> None:
        """Keep the bridge of a running container open, for the streams that it opens, until `drop`."""
        if agent_id not in self._keepers:
            self._keepers[agent_id] = asyncio.create_task(self._keep(agent_id))

    async def drop(self, agent_id: str) -> None:
        """Break the bridge of a container that ends."""
        if keeper := self._keepers.pop(agent_id, None):
            keeper.cancel()
            await asyncio.wait([keeper])
        if bridge := self._bridges.pop(agent_id, None):
            bridge.abort()

    def has_relays(self, agent_id: str) -> bool:
        """Return whether this process accepts streams that the container opens."""
        return agent_id in self._handlers

    def list_kept(self) -> Collection[str]:
        """List the containers whose bridges are kept open."""
        return list(self._keepers)

    async def close(self) -> None:
        """Break all bridges; their containers go on."""
        for agent_id in {*self._keepers, *self._bridges}:
            await self.drop(agent_id)

    async def _require(self, agent_id: str) -> Bridge:
        async with self._locks.setdefault(agent_id, asyncio.Lock()):
            present = self._bridges.get(agent_id)
            if present is not None and not present.ended.done():
                return present
            bridge = Bridge(lambda relay: self._handlers.get(agent_id, {}).get(relay))
            try:
                async with self._slots, asyncio.timeout(_OPEN_SECONDS):
                    await self._open_carrier(agent_id, bridge)
                    await bridge.ping()
            except BaseException:
                bridge.abort()
                raise
            self._bridges[agent_id] = bridge
            return bridge

    async def _keep(self, agent_id: str) -> None:
        backoff = Backoff(_FIRST_PAUSE, _LONGEST_PAUSE)
        while True:
            try:
                bridge = await self._require(agent_id)
            except (OSError, Problem) as error:
                _log.debug("bridge.failed", agent=agent_id, reason=str(error))
                await backoff.pause()
                continue
            backoff = Backoff(_FIRST_PAUSE, _LONGEST_PAUSE)
            await _watch(bridge)


async def _watch(bridge: Bridge) -> None:
    """Return when a bridge has ended; end it if its container does not answer. Calls of the warden are answers, too."""
    while not bridge.ended.done():
        await asyncio.wait([bridge.ended], timeout=max(_PING_SECONDS - bridge.idle_seconds, 0))
        if bridge.idle_seconds < _PING_SECONDS:
            continue
        try:
            async with asyncio.timeout(_ANSWER_SECONDS):
                await bridge.ping()
        except OSError:
            bridge.abort()


class _Listener(RelayListener):
    def __init__(
        self, handlers: dict[str, dict[str, StreamHandler]], key: tuple[str, str], handler: StreamHandler
    ) -> None:
        self._handlers, self._key, self._handler = handlers, key, handler

    def close(self) -> None:
        agent_id, relay = self._key
        relays = self._handlers.get(agent_id, {})
        if relays.get(relay) is self._handler:  # not one that replaced it
            del relays[relay]
            if not relays:
                del self._handlers[agent_id]
