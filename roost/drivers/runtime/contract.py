"""Contract of runtimes, which keep one container per agent with our warden as its pid 1 (decisions 0016 and 0046).

A runtime does not know tenants or HTTP, and only the name and version of an engine. It gives an agent two persistent
folders, the workspace and the home, starts a container with them, and opens byte streams to the warden and from the
container to the server. Everything else in the container (commands, files, logs, ports) goes through
`WardenClient` over `Runtime.connect`, which is the same under every runtime.

Nothing here names a path, a socket or a process of a host: a container may run on another machine.

Guarantees of every container: uid 1000; `/workspace` (the working directory) and `/home/agent` are writable and
persist; `/tmp` is writable and does not persist; all else is read-only; its only network is its own loopback; the
warden is pid 1 and serves on a socket that has no path in the container.
"""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import ClassVar, Protocol

from roost.core.machine.disk_space import DiskSpace
from roost.core.machine.unix_socket import Stream, StreamHandler
from roost.core.problem import Problem, ProblemKind

WORKSPACE = "/workspace"
HOME = "/home/agent"
PROGRAM_ENV: Mapping[str, str] = {
    "HOME": HOME,
    "LANG": "C.UTF-8",
    "LOGNAME": "agent",
    "PATH": f"{HOME}/.local/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "SHELL": "/bin/sh",
    "TERM": "xterm-256color",
    "USER": "agent",
}
"""Environment of the programs of a container, which that of its `ContainerSpec` adds to."""
API_PORT, PROXY_PORT = 8799, 8798
"""Loopback ports of an agent's container that its warden relays to the server: the API, and the egress proxy."""
BRIDGE_PORT = 8797
"""Port at which the warden of a pod accepts servers."""
WARDEN_PORTS = frozenset({API_PORT, PROXY_PORT, BRIDGE_PORT, 22, 53, 80, 443, 587, 993, 5222, 8443})
"""All TCP ports of agents' containers at which their wardens listen, under some runtime, so that no program can."""


class RuntimeFailed(Problem):
    """The runtime failed; `message` gives the reason in one line."""

    message = "The container runtime failed"


class ContainerStartTimedOut(RuntimeFailed):
    """The machine was too busy to start the container in time; another attempt may succeed."""

    kind = ProblemKind.UNAVAILABLE


@dataclass(frozen=True)
class EngineVersion:
    """Name of an engine's software, which the runtime finds: installed folders on this machine, an image elsewhere."""

    id: str
    version: str


@dataclass(frozen=True)
class ContainerLimits:
    """Resource limits of one container; `Capabilities` says which are enforced.

    disk_bytes: space of both folders together; the server watches it by `Runtime.disk`.
    """

    memory_bytes: int = 2 * 1024**3
    cpus: float = 2.0
    pids: int = 512
    tmp_bytes: int = 512 * 1024**2
    file_bytes: int = 4 * 1024**3
    open_files: int = 4096
    disk_bytes: int | None = None


@dataclass(frozen=True)
class ContainerSpec:
    """Specification of a container as plain data, with the same result under every runtime, and who waits for it.

    engine: its software is in the container, read-only, at the paths that the engine's plans name.
    env: environment of pid 1 and so of every process in the container; never a secret of the platform.
    files: absolute path in the container -> content of a read-only file.
    relays: TCP port on the container's loopback -> name of the relay (see `Runtime.listen`) that it leads to.
    egress: name of the relay that speaks HTTP CONNECT. With it the container answers DNS on its loopback and relays
        connections of programs that ignore the proxy variables.
    delete_only: no program can write to a file; files can be read and deleted.
    report_wait: called with a text for people when that for which a long start waits changes: an image, a node, a disk.
    """

    agent_id: str
    engine: EngineVersion | None = None
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    files: Mapping[str, bytes] = field(default_factory=dict[str, bytes])
    relays: Mapping[int, str] = field(default_factory=dict[int, str])
    egress: str | None = None
    limits: ContainerLimits = field(default_factory=ContainerLimits)
    delete_only: bool = False
    report_wait: Callable[[str], Awaitable[None]] | None = field(default=None, repr=False, compare=False)


@dataclass(frozen=True)
class Container:
    """A running container; `pid` is the warden's, None if it runs on another machine."""

    agent_id: str
    pid: int | None
    started_at: datetime
    delete_only: bool = False


@dataclass(frozen=True)
class DiskUsage:
    """Space of an agent's folders; if they have too many files or too deep folders to count, `is_complete` is False."""

    size: int
    is_complete: bool = True


@dataclass(frozen=True)
class Enforcement:
    """One restriction that a runtime may or may not enforce on this machine; `reason` says how, or why not."""

    name: str
    enforced: bool
    reason: str


@dataclass(frozen=True)
class Capabilities:
    """Result of a probe; if `usable` is False, no container can be started, and `error` says why."""

    usable: bool
    error: str = ""
    enforcement: Sequence[Enforcement] = ()


class DiskMeter(ABC):
    """Measures the disk on which the containers' folders are. Nothing in the folders is trusted or followed."""

    @abstractmethod
    def read_space(self) -> DiskSpace:
        """Return the free space of the disk. Raises OSError."""

    @abstractmethod
    async def measure(self, agent_id: str, *, paced: bool) -> DiskUsage:
        """Count an agent's folders, in a thread and within bounds; `paced` leaves the disk and processor to others."""

    @abstractmethod
    def written_bytes(self, containers: Sequence[Container]) -> Mapping[str, int]:
        """Return how much each container has written to disk since its start, by agent, as far as it is known."""


class RelayListener(Protocol):
    """An open relay."""

    def close(self) -> None:
        """Accept no more streams; open ones stay open. A stream that a container opens later ends at once."""


class Runtime(ABC):
    """Containers of one data folder, or of a deployment; they outlive the process that started them.

    is_shared: whether every server of the deployment reaches the same containers and files, so that any of them can
    serve an agent.
    """

    name: ClassVar[str]
    is_shared: ClassVar[bool] = False
    disk: DiskMeter

    @abstractmethod
    def take_priority(self) -> None:
        """Give this process priority over its containers, as far as its rights go; once, at the server's start."""

    @abstractmethod
    def prefer(self, agent_id: str) -> None:
        """Put the agent's container before others for some seconds, because a request waits for it. Never raises."""

    @abstractmethod
    def start_slots(self) -> int:
        """Return how many containers may start at once now without slowing each other down; at least one."""

    @abstractmethod
    async def probe(self) -> Capabilities:
        """Start and remove a real container within 10 s, and report what was enforced. Never raises."""

    @abstractmethod
    async def start(self, spec: ContainerSpec) -> Container:
        """Start the agent's container and return once its warden answers.

        Idempotent by agent id: a running container is returned unchanged, whatever the spec, except that one with
        another `delete_only` is replaced. The folders of the agent are created if they are missing. A failure leaves
        no process behind. Raises RuntimeFailed, ContainerNotRunning if the container is killed before its warden
        answers, and a Problem of the engine when its software is not there.
        """

    @abstractmethod
    async def stop(self, agent_id: str, grace: float = 5.0) -> None:
        """End the container with all its processes; SIGTERM first, SIGKILL after `grace` seconds.

        Returns when the last process is gone. The folders stay. Idempotent.
        """

    @abstractmethod
    async def delete(self, agent_id: str) -> None:
        """Stop the container without grace and remove everything that the runtime keeps of the agent.

        Removes the agent's folders and never follows a link out of them. Idempotent.
        """

    @abstractmethod
    async def list(self) -> Sequence[Container]:
        """Return every running container of this data folder, including those that an earlier server started.

        Stops containers whose start was interrupted by a crash before they were recorded.
        """

    async def find_container(self, agent_id: str) -> Container | None:
        """Return the running container of an agent, as `list` does."""
        return next((found for found in await self.list() if found.agent_id == agent_id), None)

    @abstractmethod
    async def read_memory(self, agent_ids: Collection[str]) -> Mapping[str, int]:
        """Return the bytes of memory that containers use, by agent, as far as it is known.

        Cache that the kernel can reclaim does not count.
        """

    @abstractmethod
    async def list_stored(self) -> Collection[str]:
        """Return the ids of agents whose folders are kept here, with or without a container."""

    @abstractmethod
    async def connect(self, agent_id: str) -> Stream:
        """Open a connection to the container's warden within 5 s. Raises ContainerNotRunning."""

    @abstractmethod
    async def listen(self, agent_id: str, relay: str, handler: StreamHandler) -> RelayListener:
        """Accept the streams that the agent's container opens on a relay, which nothing else can open.

        Works before `start` and while the container runs; a second call, for instance after a restart of the server,
        replaces the first. The handler is called for each stream before a byte is read from it, and closes the writer.
        Raises RuntimeFailed.
        """
