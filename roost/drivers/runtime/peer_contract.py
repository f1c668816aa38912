"""Contract of calls between the servers of a deployment.

A call has a name and arguments, and carries bytes in both directions once it is accepted. Servers trust each other,
because each of them has the keys of the deployment.
"""

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterable, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any

from roost.core.machine.unix_socket import Stream
from roost.core.problem import ServiceUnavailable

_READ_BYTES = 256 * 1024


class PeerFailed(ServiceUnavailable):
    """Another server does not answer, or refuses a call."""

    message = "The other server does not answer"


@dataclass(frozen=True)
class PeerCall:
    """Call of another server. Once `accept` has answered it, the stream is the caller's."""

    arguments: Mapping[str, Any]
    stream: Stream

    async def read_body(self) -> AsyncGenerator[bytes]:
        """Yield the bytes of the call. Raises ConnectionError if their end is missing."""
        while chunk := await self.stream[0].read(_READ_BYTES):
            yield chunk

    def accept(self) -> None:
        self.stream[1].write(b"{}\n")


PeerHandler = Callable[[PeerCall], Awaitable[object]]
"""Carries out a call. A Problem is its answer.

It returns True if it has accepted the call, whose stream is its own then, to be closed; else None.
"""


class PeerLink(ABC):
    """Connection to one other server. Every method raises PeerFailed, with what the other server says if it refuses."""

    @abstractmethod
    async def call(self, name: str, body: AsyncIterable[bytes] | None = None, **arguments: Any) -> Stream:
        """Send a call with its bytes; return the stream of an accepted one. Raises the errors of `body`, too."""

    async def run(self, name: str, body: AsyncIterable[bytes] | None = None, **arguments: Any) -> None:
        """Send a call that has no bytes as its answer."""
        (await self.call(name, body, **arguments))[1].close()


class PeerNetwork(ABC):
    """The servers of a deployment, as one of them sees them."""

    @abstractmethod
    def handle(self, name: str, handler: PeerHandler, *, any_version: bool = False) -> None:
        """Let a handler carry out the calls of a name; any_version: those of servers of another version, too."""

    @abstractmethod
    async def start(self) -> None:
        """Accept calls, if other servers have an address for this one. Raises OSError."""

    @abstractmethod
    async def stop(self) -> None:
        """End all calls, of this server and of others."""

    @abstractmethod
    def link(self, name: str, address: str) -> AbstractAsyncContextManager[PeerLink]:
        """Keep a connection to the server at `address` (`host:port`) within the block. `name` is for messages."""
