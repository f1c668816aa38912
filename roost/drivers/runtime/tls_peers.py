r"""Calls between servers over TCP and TLS (RFC 8446).

All servers show one certificate and accept no other. Between two servers there is one bridge for all calls of the one
that opened it, and a stream for each call:

    {"call": "move.connect", "version": "0.1.0", "agent": "..."}\n   the call, then its bytes, if it has some
    {}\n                                                             the answer, or {"error": "..."}; then bytes
"""

import asyncio
import json
import ssl
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterable, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any, cast

from roost.core import log
from roost.core.machine.unix_socket import Stream
from roost.core.problem import Problem
from roost.core.sensitive import Sensitive
from roost.drivers.runtime.bridge import Bridge, BridgeEnd
from roost.drivers.runtime.bridges import Bridges
from roost.drivers.runtime.peer_contract import PeerCall, PeerFailed, PeerHandler, PeerLink, PeerNetwork
from roost.drivers.runtime.tls_carrier import listen_tls_carriers, make_bridge_context, open_tls_carrier
from roost.net.host_port import parse_host_port
from roost.warden_client.errors import ContainerNotRunning

_CALL_SECONDS, _ANSWER_SECONDS = 10.0, 600.0
_log = log.get_logger("peers")


class TlsPeerNetwork(PeerNetwork):
    """Other servers by address.

    address: `host:port` at which they reach this one, None if they do not. version: most calls of other versions of
    Roost are refused. load_certificate: returns the certificate of all servers with its key, as PEM.
    """

    def __init__(
        self, address: str | None, version: str, load_certificate: Callable[[], Awaitable[Sensitive[str]]]
    ) -> None:
        self._address, self._version, self._load_certificate = address, version, load_certificate
        self._handlers: dict[str, PeerHandler] = {}
        self._compatible = set[str]()
        self._bridges = Bridges(self._open_carrier)
        self._users = Counter[str]()
        self._listener: asyncio.Server | None = None
        self._accepted = set[Bridge]()
        self._context: ssl.SSLContext | None = None

    def handle(self, name: str, handler: PeerHandler, *, any_version: bool = False) -> None:
        self._handlers[name] = handler
        if any_version:
            self._compatible.add(name)

    async def start(self) -> None:
        if self._address is not None:
            address = parse_host_port(self._address)
            host = str(address.address) if address.address else None  # a name may be that of a router
            certificate = await self._load_certificate()
            self._listener = await listen_tls_carriers(host, address.port, certificate, self._accept)

    async def stop(self) -> None:
        if self._listener is not None:
            self._listener.close()
        for address in list(self._users):
            await self._bridges.drop(address)
        for bridge in list(self._accepted):
            bridge.abort()

    @asynccontextmanager
    async def link(self, name: str, address: str) -> AsyncGenerator[PeerLink]:
        self._users[address] += 1
        self._bridges.keep(address)
        try:
            yield _TlsPeerLink(self._bridges, name, address, self._version)
        finally:
            self._users[address] -= 1
            if not self._users[address]:
                del self._users[address]
                await self._bridges.drop(address)

    async def _open_carrier(self, address: str, bridge: Bridge) -> None:
        if self._context is None:
            self._context = make_bridge_context(await self._load_certificate())
        target = parse_host_port(address)
        await open_tls_carrier(target.host, target.port, self._context, bridge)

    def _accept(self) -> Bridge:
        bridge = BridgeEnd(self._serve)
        self._accepted.add(bridge)
        bridge.ended.add_done_callback(lambda _: self._accepted.discard(bridge))
        return bridge

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        is_taken = False
        try:
            is_taken = await self._take(reader, writer)
        finally:
            if not is_taken:
                writer.close()

    async def _take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Read a call and let its handler carry it out; return whether the handler has the stream now."""
        with suppress(OSError):  # includes TimeoutError
            async with asyncio.timeout(_CALL_SECONDS):
                line = await reader.readline()
            try:
                call = PeerCall(_parse_object(line), (reader, writer))
                if await self._find_handler(call)(call) is not None:
                    return True
                call.accept()
            except Problem as problem:
                _log.info("peer.call_refused", call=line[:200], reason=problem.message)
                writer.write(json.dumps({"error": problem.message}).encode() + b"\n")
            except OSError:
                raise
            except Exception:  # noqa: BLE001 - the edge of a task
                _log.exception("peer.call_failed", call=line[:200])
                writer.write(json.dumps({"error": Problem.message}).encode() + b"\n")
        return False

    def _find_handler(self, call: PeerCall) -> PeerHandler:
        """Return the handler of a call. Raises PeerFailed."""
        name = str(call.arguments.get("call"))
        if call.arguments.get("version") != self._version and name not in self._compatible:
            raise PeerFailed(f"It runs Roost {self._version}, and this server another version")
        handler = self._handlers.get(name)
        if handler is None:
            raise PeerFailed("It does not know this call")
        return handler


@dataclass(frozen=True)
class _TlsPeerLink(PeerLink):
    _bridges: Bridges
    _name: str
    _address: str
    _version: str

    async def call(self, name: str, body: AsyncIterable[bytes] | None = None, **arguments: Any) -> Stream:
        try:
            reader, writer = await self._bridges.connect(self._address)
            try:
                line = json.dumps({"call": name, "version": self._version, **arguments})
                writer.write(line.encode() + b"\n")
                if body is not None:
                    async for chunk in body:
                        writer.write(chunk)
                        await writer.drain()
                    writer.write_eof()
                async with asyncio.timeout(_ANSWER_SECONDS):
                    answer = _parse_object(await reader.readline())
            except BaseException:
                writer.transport.abort()
                raise
        except (OSError, ContainerNotRunning):
            raise PeerFailed(f"The server {self._name} does not answer") from None
        if "error" in answer:
            writer.close()
            raise PeerFailed(f"The server {self._name} refused: {answer['error']}")
        return reader, writer


def _parse_object(line: bytes) -> Mapping[str, Any]:
    """Parse a line of the protocol. Raises PeerFailed."""
    try:
        found = json.loads(line)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise PeerFailed("The connection between the servers broke")
    return cast("dict[str, Any]", found)
