"""Which server has an agent or upload, for requests that arrive at another one; connections to it (decision 0057)."""

from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial

from sqlalchemy import Connection

from roost.agents.lifecycle.hosts import store
from roost.agents.lifecycle.hosts.model import Host
from roost.agents.registry.repository import find_agent
from roost.core import clock
from roost.core.db import Database, read_database_time
from roost.core.machine.unix_socket import Stream
from roost.drivers.runtime.peer_contract import PeerFailed, PeerHandler, PeerLink, PeerNetwork
from roost.identity.caller import token_digest

HTTP_CALL = "http"
"""Name of the call whose bytes are HTTP requests."""
KNOWN_SECONDS = 1.0
_MAX_KNOWN = 10_000


@dataclass(frozen=True)
class AgentLocation:
    """`server` is the other server that has it and runs; None if there is none. `until` is monotonic time."""

    server: Host | None
    until: float


FindHost = Callable[[Connection, bytes], str | None]
"""Returns the host that has the bytes of an unfinished upload, by the digest of its token."""
_UPLOAD = "upload/"


def upload_subject(token: str) -> str:
    """Return how `AgentServers` names an upload; an agent is named by its id."""
    return _UPLOAD + token_digest(token).hex()


def is_upload(subject: str) -> bool:
    return subject.startswith(_UPLOAD)


class AgentServers:
    """Servers of agents and uploads as one of them sees them. A location is believed for a second, then read again."""

    def __init__(self, db: Database, host_id: str, network: PeerNetwork, find_upload_host: FindHost) -> None:
        self._find_upload_host = find_upload_host
        self._db, self._host_id, self._network = db, host_id, network
        self._known: dict[str, AgentLocation] = {}
        self._links: dict[str, tuple[PeerLink, AsyncExitStack]] = {}
        self._is_stopped = False
        self.is_leaving = False

    def forget_locations(self) -> None:
        """Read each location from now on, because this server leaves."""
        self.is_leaving = True

    def recall(self, subject: str) -> AgentLocation | None:
        """Return where an agent or upload is, None if that is not known without I/O."""
        location = None if self.is_leaving else self._known.get(subject)
        return location if location is not None and location.until > clock.monotonic_seconds() else None

    async def find(self, subject: str) -> AgentLocation:
        """Read where an agent or upload is."""
        server = await self._db.read(partial(self._read, subject))
        if len(self._known) >= _MAX_KNOWN:
            self._known.clear()
        location = AgentLocation(server, clock.monotonic_seconds() + KNOWN_SECONDS)
        self._known[subject] = location
        return location

    async def dial(self, server: Host) -> Stream:
        """Open a stream for HTTP requests to another server. Raises PeerFailed."""
        if self._is_stopped:
            raise PeerFailed("This server stops")
        address = server.address or ""
        if address not in self._links:
            stack = AsyncExitStack()
            self._links[address] = (await stack.enter_async_context(self._network.link(server.name, address)), stack)
        return await self._links[address][0].call(HTTP_CALL)

    def serve(self, handler: PeerHandler) -> None:
        """Let a handler take the streams of other servers."""
        self._network.handle(HTTP_CALL, handler, any_version=True)  # one version replaces another server by server

    async def stop(self) -> None:
        """Close the connections to other servers. Idempotent."""
        self._is_stopped = True
        while self._links:
            await self._links.popitem()[1][1].aclose()

    def _read(self, subject: str, connection: Connection) -> Host | None:
        if is_upload(subject):
            host_id = self._find_upload_host(connection, bytes.fromhex(subject.removeprefix(_UPLOAD)))
        else:
            agent = find_agent(connection, subject)
            host_id = None if agent is None else agent.host_id
        if host_id is None or host_id == self._host_id:
            return None
        host, now = store.find_host(connection, host_id), read_database_time(connection)
        return host if host is not None and host.address is not None and host.is_running(now) else None
