"""Where a move brings an agent: to another runtime of this server, or to another server of the deployment.

The other server never takes files for an agent that it
has, and the database alone says which server that is, so a call that comes late does no harm.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial

from roost.agents.lifecycle.hosts.model import Host
from roost.agents.lifecycle.hosts.service import list_hosts
from roost.agents.lifecycle.workflows.model import TrustedAuthorities, container_spec
from roost.agents.registry.agent_containers import RuntimeAssignments
from roost.agents.registry.agent_runtimes import AgentRuntimes
from roost.agents.registry.model import Agent
from roost.agents.registry.repository import HostAgents
from roost.core import clock
from roost.core.db import read_database_time
from roost.core.machine.unix_socket import Stream
from roost.drivers.git.contract import GitRepositories
from roost.drivers.runtime.contract import ContainerLimits, ContainerSpec, Runtime, RuntimeFailed
from roost.drivers.runtime.peer_contract import PeerCall, PeerFailed, PeerLink, PeerNetwork
from roost.warden_client.client import WardenClient

_CLOCK_MARGIN = timedelta(seconds=2)
_READ_BYTES = 256 * 1024


class MoveTarget(ABC):
    """Place of a copy of an agent's files, in a container from which nothing leads out.

    Every method raises the errors of `Runtime`, and PeerFailed for another server.
    """

    @abstractmethod
    async def prepare(self, agent: Agent, size: int) -> None:
        """Remove what an interrupted move has left, and start the container for files of `size` bytes.

        Raises EngineNotInstalled, too.
        """

    @abstractmethod
    async def connect(self, agent_id: str) -> Stream:
        """Open a stream to the container's warden."""

    @abstractmethod
    async def copy_repository(self, agent_id: str) -> None:
        """Copy the agent's repository, the second time what has changed since the first time. Raises GitFailed, too.

        Repositories that all servers share are not copied.
        """

    @abstractmethod
    async def release(self, agent_id: str) -> None:
        """Stop the container; the copy stays. Idempotent."""

    @abstractmethod
    async def discard(self, agent_id: str) -> None:
        """Remove container and copy. Idempotent."""

    def warden(self, agent_id: str) -> WardenClient:
        return WardenClient(partial(self.connect, agent_id))


@dataclass(frozen=True)
class _RuntimeTarget(MoveTarget):
    """Another runtime of this server; both use the same repository."""

    _runtime: Runtime
    _targets: "MoveTargets"

    async def prepare(self, agent: Agent, size: int) -> None:
        await self._runtime.delete(agent.id)
        space = self._runtime.disk.read_space()
        if not space.leaves(self._targets.disk_reserve, size):
            raise RuntimeFailed(f"The files have {size:,} bytes, and only {space.free:,} are free for a copy")
        await self._runtime.start(self._targets.copy_spec(agent))

    async def connect(self, agent_id: str) -> Stream:
        return await self._runtime.connect(agent_id)

    async def copy_repository(self, agent_id: str) -> None:
        pass

    async def release(self, agent_id: str) -> None:
        await self._runtime.stop(agent_id)

    async def discard(self, agent_id: str) -> None:
        await self._runtime.delete(agent_id)


class _ServerTarget(MoveTarget):
    """Another server, in the runtime that it gives to new agents."""

    def __init__(self, link: PeerLink, repositories: GitRepositories, bucket: str) -> None:
        self._link, self._repositories, self._bucket = link, repositories, bucket
        self._copied_at: datetime | None = None

    async def prepare(self, agent: Agent, size: int) -> None:
        await self._link.run("move.prepare", agent=agent.id, size=size, bucket=self._bucket)

    async def connect(self, agent_id: str) -> Stream:
        return await self._link.call("move.connect", agent=agent_id)

    async def copy_repository(self, agent_id: str) -> None:
        if self._repositories.is_shared:
            return
        began = clock.utc_now() - _CLOCK_MARGIN
        if await self._repositories.collector.measure_usage(agent_id) is not None:
            async with aclosing(self._repositories.copier.read(agent_id, self._copied_at)) as files:
                await self._link.run("move.write_repository", files, agent=agent_id)
        self._copied_at = began

    async def release(self, agent_id: str) -> None:
        await self._link.run("move.release", agent=agent_id)

    async def discard(self, agent_id: str) -> None:
        await self._link.run("move.discard", agent=agent_id)


@dataclass(frozen=True)
class OtherServers:
    """The other servers of the deployment.

    bucket: URL of the storage of this server that the others may share, empty for a folder of its own.
    """

    network: PeerNetwork
    bucket: str


@dataclass(frozen=True)
class MoveTargets:
    """Runtimes of this server, and other servers; `disk_reserve` is what a copy leaves free, in bytes."""

    runtimes: AgentRuntimes
    host_agents: HostAgents
    repositories: GitRepositories
    others: OtherServers
    limits: ContainerLimits
    trust: TrustedAuthorities
    disk_reserve: int

    @property
    def assignments(self) -> RuntimeAssignments:
        return self.runtimes.runtime.assignments

    async def list_servers(self) -> Sequence[Host]:
        """List the other servers that run and have an address; none of or for those with a shared runtime."""
        hosts, now = await self.host_agents.db.read(
            lambda connection: (list_hosts(connection), read_database_time(connection))
        )
        if self.assignments.default.is_shared:
            return []
        others = [host for host in hosts if host.id != self.host_agents.host_id and host.is_running(now)]
        return [host for host in others if host.address is not None and host.shared_runtime is None]

    @asynccontextmanager
    async def open_target(self, runtime: str, server: str = "") -> AsyncGenerator[MoveTarget]:
        """Open a runtime of this server, or another server by its id. Raises RuntimeFailed, PeerFailed."""
        if not server:
            yield _RuntimeTarget(self.assignments.get_runtime(runtime), self)
            return
        host = next((host for host in await self.list_servers() if host.id == server), None)
        if host is None or host.address is None:
            raise PeerFailed("The other server does not run")
        self._require_names()
        async with self.others.network.link(host.name, host.address) as link:
            yield _ServerTarget(link, self.repositories, self.others.bucket)

    def copy_spec(self, agent: Agent) -> ContainerSpec:
        """Return a container that only gives access to the agent's files: nothing leads out of it."""
        engine = self.runtimes.get_engine(agent.engine).require(agent.engine_version)
        return replace(container_spec(agent.id, engine, self.limits, self.trust), relays={}, egress=None)

    async def discard_copies(self) -> None:
        """Delete what this server got of agents before it ended, unless they are its own now. Before it takes calls."""
        for agent_id in await self.host_agents.list_copies():
            if await self.host_agents.has(agent_id):
                await self.host_agents.forget_copy(agent_id)
            else:
                await self._discard_copy(agent_id)

    def serve_peers(self) -> None:
        """Take files that other servers bring."""
        network = self.others.network
        network.handle("move.prepare", self._prepare)
        network.handle("move.connect", self._connect)
        network.handle("move.write_repository", self._write_repository)
        network.handle("move.release", self._release)
        network.handle("move.discard", self._discard)

    async def _open_own(self, call: PeerCall) -> tuple[str, MoveTarget]:
        """Return the agent of a call, and the runtime for its copy. Raises PeerFailed if the agent is here."""
        agent_id = str(call.arguments["agent"])
        if await self.host_agents.has(agent_id):
            raise PeerFailed("The agent is on this server")
        if self.assignments.default.is_shared:  # the files there may be those of the agent itself
            raise PeerFailed("The runtime of this server is that of all servers")
        self.assignments.assign(agent_id, None)
        return agent_id, _RuntimeTarget(self.assignments.default, self)

    async def _prepare(self, call: PeerCall) -> None:
        agent_id, target = await self._open_own(call)
        if not self.others.bucket or call.arguments["bucket"] != self.others.bucket:
            raise PeerFailed("The servers do not share a bucket (`blobs`), so the agent would lose its snapshots")
        self._require_names()
        await self.host_agents.record_copy(agent_id)
        await self.delete_repository(agent_id)
        await target.prepare(await self.runtimes.agents.get(agent_id), int(call.arguments["size"]))

    def _require_names(self) -> None:
        """Raise PeerFailed if an agent would lose its address."""
        if self.runtimes.agents.ports is not None:
            raise PeerFailed("Agents have ports instead of names, so the agent would lose its address")

    async def _connect(self, call: PeerCall) -> bool:
        agent_id, target = await self._open_own(call)
        reader, writer = await target.connect(agent_id)
        call.accept()
        try:
            await asyncio.gather(_copy_bytes(call.stream[0], writer), _copy_bytes(reader, call.stream[1]))
        finally:  # ends the other direction, too
            writer.transport.abort()
            call.stream[1].transport.abort()
        return True

    async def _write_repository(self, call: PeerCall) -> None:
        agent_id, _ = await self._open_own(call)
        await self.repositories.copier.write(agent_id, call.read_body())

    async def _release(self, call: PeerCall) -> None:
        agent_id, target = await self._open_own(call)
        await target.release(agent_id)

    async def _discard(self, call: PeerCall) -> None:
        agent_id, _ = await self._open_own(call)
        await self._discard_copy(agent_id)

    async def _discard_copy(self, agent_id: str) -> None:
        await self.assignments.default.delete(agent_id)
        await self.delete_repository(agent_id)
        await self.host_agents.forget_copy(agent_id)

    async def delete_repository(self, agent_id: str) -> None:
        """Delete the copy of this server; a repository that all servers share goes with its agent only."""
        if not self.repositories.is_shared:
            await self.repositories.delete(agent_id)


async def _copy_bytes(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    """Copy until the source ends, and pass on its end. Raises ConnectionError."""
    while data := await source.read(_READ_BYTES):
        sink.write(data)
        await sink.drain()
    if not sink.is_closing():
        sink.write_eof()
