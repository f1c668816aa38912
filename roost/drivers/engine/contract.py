"""The contract of an engine: how a program that is an assistant is installed, configured, started and spoken to.

An engine driver is one small class. It plans purely (`plan` turns a setup into files, arguments and environment) and
talks to a running gateway only over byte streams that it is handed (`Dial`). It never sees the host's network, never
starts a process on the host except to install, and keeps no state of its own: everything of an agent lives in the
agent's home.

Abilities (devices, tasks, channels, config ...) are separate small contracts in `abilities/`. An engine has an
attribute for each, None where it lacks it: what an engine can do is a type and not a flag.
"""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from roost.core.problem import Problem, ProblemKind
from roost.core.sensitive import Sensitive
from roost.drivers.engine.abilities.channels import ChannelAbility, ChannelSetup
from roost.drivers.engine.abilities.configuration import ConfigurationAbility
from roost.drivers.engine.abilities.devices import DeviceAbility
from roost.drivers.engine.abilities.tasks import TaskAbility
from roost.drivers.runtime.contract import EngineVersion, Stream

Dial = Callable[[int], Awaitable[Stream]]
"""Opens a byte stream to a TCP port on the container's loopback. Raises ContainerNotRunning and DialRefused."""

Progress = Callable[[str, float | None], None]
"""Called with what is being done and, where it is known, how much of it is done (0 to 1)."""


class EngineInstallFailed(Problem):
    """An engine could not be installed; `message` carries the installer's last lines."""

    kind = ProblemKind.FAILED
    message = "The engine could not be installed"


class EngineNotInstalled(Problem):
    """The engine, or that version of it, is not installed."""

    kind = ProblemKind.UNAVAILABLE
    message = "The engine is not installed"


class InvalidVersionName(Problem):
    """Not a version's name, or one that the driver cannot drive."""

    kind = ProblemKind.INVALID
    message = "The engine has no such version, or it is one that cannot be driven"


class EngineFailed(Problem):
    """A running gateway gave no usable answer; the contract's wording for every endpoint that an engine backs."""

    kind = ProblemKind.FAILED
    message = "CLI error"


@dataclass(frozen=True)
class GatewaySetup:
    """What an engine may know of its agent and of the container it runs in.

    origin: the public origin of the agent (`http://{agentId}.agents.localhost:8642`), for allow-lists of the engine.
    token: the internal token of the gateway, known to our edge and to nobody outside; never the public one.
    model_url: the OpenAI-compatible model gateway as the container sees it (`http://127.0.0.1:8799/v1`); needs no key.
    models: the model ids it serves, the default first.
    all_models: False when some provider could not be asked, so that `models` lacks what that one serves.
    channels: the chat channels that are on, by name, and all of them: what is not there is off. Only names of the
        engine's `channels.supported(version)`.
    existing: path relative to the home -> present content of each file that the engine named in `reads`; absent
        ones are left out. Hostile: an agent wrote them.
    """

    agent_id: str
    name: str
    origin: str
    token: Sensitive[str]
    model_url: str
    models: Sequence[str]
    proxy_url: str
    all_models: bool = True
    channels: Mapping[str, ChannelSetup] = field(default_factory=dict[str, ChannelSetup])
    existing: Mapping[str, bytes] = field(default_factory=dict[str, bytes])


@dataclass(frozen=True)
class GatewayPlan:
    """How to start a gateway: files to write first (path relative to the home, mode 0600), then one command."""

    files: Mapping[str, bytes]
    argv: Sequence[str]
    env: Mapping[str, str]


@dataclass(frozen=True)
class GatewayHealth:
    """What a running gateway says of itself."""

    version: str
    detail: Mapping[str, object] = field(default_factory=dict[str, object])


class Engine(ABC):
    """One engine. `id` and `label` are what `GET /v0/agents/engines` shows."""

    id: ClassVar[str]
    label: ClassVar[str]
    default_version: ClassVar[str]
    port: int
    """The loopback port in the container on which the gateway serves its HTTP and WebSocket surface."""
    start_deadline: ClassVar[float]
    """Seconds after which a gateway that does not answer has failed."""
    state: ClassVar[Sequence[str]] = ()
    """Folders (relative to the home) that hold all that the gateway remembers: what an update may spoil."""
    reads: ClassVar[Sequence[str]] = ()
    """Files (relative to the home) whose present content `plan` wants, so that a user's changes survive a start."""
    channels: ChannelAbility | None = None
    devices: DeviceAbility | None = None
    configuration: ConfigurationAbility | None = None
    tasks: TaskAbility | None = None

    @abstractmethod
    def installed(self) -> Sequence[str]:
        """The installed versions, newest first. Cheap: looks at folders, runs nothing."""

    @abstractmethod
    def available(self) -> Sequence[str]:
        """The versions that the registry offers, newest first, at most 20. Blocking, needs the network.

        Raises EngineInstallFailed when the registry cannot be asked.
        """

    @abstractmethod
    def install(self, version: str, progress: Progress) -> None:
        """Install a version into its own folder. Blocking (minutes). Idempotent; safe beside another process that
        installs the same; a cut-off install leaves nothing that counts as installed. Raises EngineInstallFailed.
        """

    @abstractmethod
    def remove(self, version: str) -> None:
        """Remove an installed version. Idempotent."""

    @abstractmethod
    def folders(self, version: str) -> Mapping[str, Path]:
        """Return where an installed version is on this machine: path in the container -> folder.

        For runtimes that run containers on this machine. Raises EngineNotInstalled.
        """

    def require(self, version: str) -> EngineVersion:
        """Return the name of an installed version, for `ContainerSpec`. Raises EngineNotInstalled."""
        self.folders(version)
        return EngineVersion(self.id, version)

    @abstractmethod
    def plan(self, version: str, setup: GatewaySetup) -> GatewayPlan:
        """Pure. Whatever `setup.existing` holds (it may be garbage), the plan starts a gateway that listens on `port`
        of the loopback only, takes `setup.token` and nothing else, and uses the model gateway for models.
        """

    @abstractmethod
    async def ready(self, dial: Dial) -> bool:
        """Whether the gateway answers and takes requests now; one try, at most 2 s; not yet listening is False."""

    @abstractmethod
    async def health(self, dial: Dial, token: Sensitive[str]) -> GatewayHealth:
        """Ask a running gateway for its health with the internal token, at most 10 s.

        Raises EngineFailed, also for a wrong token, and what `dial` raises.
        """

    def credential(self, token: Sensitive[str]) -> tuple[str, Sensitive[str]]:
        """The request header that our edge puts on every request to the gateway in place of the caller's credential."""
        return "Authorization", Sensitive(f"Bearer {token.reveal()}")
