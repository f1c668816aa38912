"""A connection of two sockets after a switch to WebSocket: bytes go from one to the other as they come, unparsed.

It adds to each read little more than a write (`WebSocket message there and back, CPU` of `bench edge`). What follows
from the traffic, its counts and times, is settled once a second, and for each 64 KiB.
"""

import asyncio
from collections.abc import Callable

_SETTLE_SECONDS = 1.0
_SETTLE_BYTES = 64 * 1024
_CONTROL_FRAME = 0x08
"""Set in the first byte of a WebSocket frame that is no message (RFC 6455, section 5.2); most reads begin with one."""


class Tunnel:
    """Both directions between two open transports, whose protocols it replaces until `end`.

    settle: called at most a second after traffic with the bytes from the client, those from the gateway, and whether
    the client has sent a message since the last second; pongs of an idle page are none.
    """

    def __init__(
        self, client: asyncio.Transport, gateway: asyncio.Transport, settle: Callable[[int, int, bool], None]
    ) -> None:
        self._to_client, self._to_gateway, self._on_settle = client.write, gateway.write, settle
        self._received = self._sent = 0
        self._has_message = False
        self._timer: asyncio.TimerHandle | None = None
        self._replaced = (client, client.get_protocol()), (gateway, gateway.get_protocol())
        client.set_protocol(_TunnelEnd(client.get_protocol(), self._carry_from_client))
        gateway.set_protocol(_TunnelEnd(gateway.get_protocol(), self._carry_from_gateway))

    def end(self) -> None:
        for transport, protocol in self._replaced:
            transport.set_protocol(protocol)
        if self._timer is not None:
            self._timer.cancel()
            self._settle()

    def _carry_from_client(self, data: bytes) -> None:
        self._received += len(data)
        self._to_gateway(data)
        if not self._has_message and not data[0] & _CONTROL_FRAME:
            self._has_message = True
            self._settle(has_message=True)
        elif self._timer is None or self._received >= _SETTLE_BYTES:
            self._settle()

    def _carry_from_gateway(self, data: bytes) -> None:
        self._sent += len(data)
        self._to_client(data)
        if self._timer is None or self._sent >= _SETTLE_BYTES:
            self._settle()

    def _settle(self, *, has_message: bool = False) -> None:
        """Report the traffic since the last time."""
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_SETTLE_SECONDS, self._on_timer)
        received, sent = self._received, self._sent
        self._received = self._sent = 0
        self._on_settle(received, sent, has_message)

    def _on_timer(self) -> None:
        self._timer, self._has_message = None, False
        if self._received or self._sent:
            self._settle()


class _TunnelEnd(asyncio.Protocol):
    """Protocol that hands input to `receive`, and all other events to the protocol that it replaces."""

    def __init__(self, replaced: asyncio.BaseProtocol, receive: Callable[[bytes], None]) -> None:
        self.data_received = receive  # pyright: ignore[reportAttributeAccessIssue] - the event loop calls it by position, with no frame between
        self.connection_lost = replaced.connection_lost
        self.pause_writing = replaced.pause_writing
        self.resume_writing = replaced.resume_writing
