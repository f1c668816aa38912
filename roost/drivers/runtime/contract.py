"""The contract of a runtime: it keeps one container ("box") per agent, with our warden as its pid 1.

A runtime knows nothing of engines, tenants or HTTP. It gives an agent a place (two folders that persist: the
workspace and the home), starts a box around it, and hands out byte streams to the warden inside. Everything that
happens *in* the box (exec, files, logs, ports) goes through `warden.Warden` over `Runtime.connect`, so it is one
code path under every runtime.

What every box promises, whatever the runtime: uid 1000, `/workspace` (the working directory) and `/home/agent` are
writable and persist, `/tmp` is writable and does not, all else is read-only; no network but its own loopback;
the warden is pid 1 and serves on a socket whose path is not inside the box.
"""

import socket
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import ClassVar

from roost.core.problem import Problem, ProblemKind
from roost.core.unix_socket import Stream

WORKSPACE = "/workspace"
HOME = "/home/agent"


class RuntimeFailed(Problem):
    """The runtime could not do what it was asked; `message` says what and why, in one line."""

    kind = ProblemKind.FAILED
    message = "The container runtime failed"


class ContainerNotRunning(Problem):
    """No box of that agent is running."""

    kind = ProblemKind.UNAVAILABLE
    message = "The agent's container is not running"


@dataclass(frozen=True)
class ReadOnlyMount:
    """A folder of the host that the box sees read-only at `target`."""

    source: Path
    target: str


@dataclass(frozen=True)
class ContainerLimits:
    """What one box may use. Enforced where `Capabilities` says so."""

    memory_bytes: int = 2 * 1024**3
    cpus: float = 2.0
    pids: int = 512
    tmp_bytes: int = 512 * 1024**2
    file_bytes: int = 4 * 1024**3
    open_files: int = 4096


@dataclass(frozen=True)
class ContainerSpec:
    """All that a box needs. Pure data: the same spec gives the same box under every runtime.

    relays: TCP port on the box's loopback -> name of the relay socket (see `Runtime.relay`) that it leads to.
    egress: name of the relay socket that speaks HTTP CONNECT; given, the box also answers DNS on its loopback and
        relays connections of programs that ignore the proxy variables through it.
    env: environment of pid 1 and so of everything in the box; never a secret of the platform.
    """

    agent_id: str
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    mounts: Sequence[ReadOnlyMount] = ()
    relays: Mapping[int, str] = field(default_factory=dict[int, str])
    egress: str | None = None
    limits: ContainerLimits = field(default_factory=ContainerLimits)


@dataclass(frozen=True)
class Container:
    """A running box. `pid` is the warden's pid as the host sees it (None where the runtime does not tell)."""

    agent_id: str
    pid: int | None
    started_at: datetime


@dataclass(frozen=True)
class Enforcement:
    """One thing that a runtime may or may not enforce on this machine; `reason` says why not, or how."""

    name: str
    enforced: bool
    reason: str


@dataclass(frozen=True)
class Capabilities:
    """What a probe found by really running a box. `usable` False means that no box can be started; `error` says why."""

    usable: bool
    error: str = ""
    enforcement: Sequence[Enforcement] = ()

    def enforces(self, name: str) -> bool:
        return any(item.enforced for item in self.enforcement if item.name == name)


class Runtime(ABC):
    """One instance serves one data folder; its boxes outlive the process that started them."""

    name: ClassVar[str]

    @abstractmethod
    async def probe(self) -> Capabilities:
        """Start and remove a real box under a deadline of 10 s, and tell what held. Never raises."""

    @abstractmethod
    async def start(self, spec: ContainerSpec) -> Container:
        """Start the agent's box and return once its warden answers.

        Idempotent by agent id: a running box is returned as it is, whatever the spec. The folders of the agent are
        made when they are missing and kept when they exist. A failure leaves no process behind. Raises RuntimeFailed.
        """

    @abstractmethod
    async def stop(self, agent_id: str, grace: float = 5.0) -> None:
        """End the box with all its processes; SIGTERM first, SIGKILL after `grace` seconds.

        Returns when the last process is gone. A box that is not running is not an error. The folders stay.
        """

    @abstractmethod
    async def delete(self, agent_id: str) -> None:
        """Stop the box without grace and remove all that the runtime keeps of the agent, its folders among it.

        Never follows a link out of those folders. Idempotent.
        """

    @abstractmethod
    async def list(self) -> Sequence[Container]:
        """Every running box of this data folder, those started by an earlier process of the server among them.

        A box whose start was cut off by a crash before it was recorded is ended by this call, not listed.
        """

    @abstractmethod
    async def connect(self, agent_id: str) -> Stream:
        """A new connection to the box's warden, at most 1 s. Raises BoxGone."""

    @abstractmethod
    def relay(self, agent_id: str, name: str) -> socket.socket:
        """A listening stream socket that the box can reach and no other box, user or agent can.

        Works before `start` and while the box runs; asked again (after a restart of the server) it replaces
        the former socket of that name. The caller accepts on it and closes it.
        """
