"""The contract of an engine: installing, configuring and starting an assistant's software, and calling its gateway.

`plan` is a pure function from a setup to files, arguments and environment. A driver reaches a running gateway only
through byte streams (`Dial`), never through the host's network; it starts processes on the host only to install; and
it has no state, because all data of an agent is in the agent's home.

Abilities (channels, chat, devices, configuration, skills, tasks) are separate contracts in `abilities/`. An engine has
an attribute for each, which is None if it lacks the ability.
"""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from roost.core.problem import InvalidInput, Problem, ServiceUnavailable
from roost.core.sensitive import Sensitive
from roost.drivers.engine.abilities.channels import ChannelAbility, ChannelSetup
from roost.drivers.engine.abilities.chat import ChatAbility
from roost.drivers.engine.abilities.configuration import ConfigurationAbility
from roost.drivers.engine.abilities.devices import DeviceAbility
from roost.drivers.engine.abilities.saved_state import SavedState
from roost.drivers.engine.abilities.skills import SkillAbility
from roost.drivers.engine.abilities.tasks import TaskAbility
from roost.drivers.runtime.contract import EngineVersion, Stream

Dial = Callable[[int], Awaitable[Stream]]
"""Opens a byte stream to a TCP port on the container's loopback. Raises ContainerNotRunning, DialRefused."""

Progress = Callable[[str, float | None], None]
"""Called with a description of the current step and its progress from 0 to 1, None if it is unknown."""


class EngineInstallFailed(Problem):
    """An engine could not be installed; `message` contains the installer's last lines."""

    message = "The engine could not be installed"


class EngineNotInstalled(ServiceUnavailable):
    message = "The engine is not installed"


class InvalidVersionName(InvalidInput):
    """The name is not a version's, or the driver does not support the version."""

    message = "The engine has no such version, or Roost does not support it"


class EngineFailed(Problem):
    """A running gateway gave no usable answer; the message is the contract's for all endpoints of engines."""

    message = "CLI error"


@dataclass(frozen=True)
class GatewaySetup:
    """Properties of an agent and of its container that an engine may know.

    origin: the agent's public origin (`http://{agentId}.agents.localhost:8642`), for the engine's allow-lists.
    token: the gateway's internal token, which only our edge knows; never the public one.
    model_url: OpenAI-compatible model gateway inside the container (`http://127.0.0.1:8799/v1`); needs no key.
    models: ids of the served models, the default first.
    all_models: False if a provider could not be queried, so that its models are missing in `models`.
    channels: all enabled channels by name, each one of the engine's `channels.supported(version)`; the others are
        disabled.
    existing: path relative to the home -> untrusted content of each present file in `Engine.reads`.
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
    """Files to write before a start (path relative to the home, mode 0600), and the command that starts a gateway."""

    files: Mapping[str, bytes]
    argv: Sequence[str]
    env: Mapping[str, str]


class Engine(ABC):
    """Driver of an engine; `GET /v0/agents/engines` shows `id` and `label`."""

    id: ClassVar[str]
    label: ClassVar[str]
    default_version: ClassVar[str]
    port: int
    """Loopback port in the container on which the gateway serves HTTP and WebSocket."""
    images: Sequence[str] = ()
    """Versions that images of the runtime have, newest first; without any, the software is on this machine."""
    installed_bytes: ClassVar[int] = 0
    """Space of the default version on disk, with everything that it needs."""
    start_deadline: ClassVar[float]
    """Seconds after which a start without an answer has failed."""
    state: ClassVar[Sequence[str]] = ()
    """Folders (relative to the home) with all state of the gateway, which a failed update can damage."""
    saved_state: ClassVar[SavedState] = SavedState()
    """What snapshots save of the home: memory, sessions and configuration, without credentials."""
    reads: ClassVar[Sequence[str]] = ()
    """Files (relative to the home) that `plan` needs in `GatewaySetup.existing` to preserve a user's changes."""
    channels: ChannelAbility | None = None
    chat: ChatAbility | None = None
    devices: DeviceAbility | None = None
    configuration: ConfigurationAbility | None = None
    skills: SkillAbility | None = None
    tasks: TaskAbility | None = None

    @abstractmethod
    def installed(self) -> Sequence[str]:
        """Return the versions that agents can have at once, newest first. Cheap: only looks at folders."""

    @abstractmethod
    def available(self) -> Sequence[str]:
        """Return at most 20 versions that can be installed, newest first. Blocking, needs the network.

        Raises EngineInstallFailed if the registry cannot be queried.
        """

    @abstractmethod
    def install(self, version: str, progress: Progress) -> None:
        """Install a version into its own folder. Blocking (minutes), idempotent, safe between processes.

        An interrupted installation does not count as installed. Raises InvalidVersionName, EngineInstallFailed.
        """

    @abstractmethod
    def remove(self, version: str) -> None:
        """Remove an installed version. Idempotent."""

    @abstractmethod
    def folders(self, version: str) -> Mapping[str, Path]:
        """Return the folders of an installed version for a runtime on this machine: path in the container -> folder.

        Raises EngineNotInstalled.
        """

    def require(self, version: str) -> EngineVersion:
        """Return a version for `ContainerSpec`. Raises EngineNotInstalled."""
        if not self.images:
            self.folders(version)
        elif version not in self.images:
            raise EngineNotInstalled(f"There is no image of {self.label} {version[:64]}")
        return EngineVersion(self.id, version)

    @abstractmethod
    def plan(self, version: str, setup: GatewaySetup) -> GatewayPlan:
        """Plan the start of a gateway. Pure.

        For any content of `setup.existing`, the gateway listens only on `port` of the loopback, accepts only
        `setup.token`, and uses the model gateway.
        """

    @abstractmethod
    async def ready(self, dial: Dial) -> bool:
        """Return whether the gateway accepts requests now. One attempt of at most 2 s."""

    @abstractmethod
    async def health(self, dial: Dial, token: Sensitive[str]) -> str:
        """Return the version that a healthy gateway reports, within 10 s.

        Raises EngineFailed, also for a wrong token, and the errors of `dial`.
        """

    def redact_configuration(self, content: bytes) -> bytes | None:
        """Return `saved_state.configuration` without credentials and the platform's keys; None if that is unsure.

        Pure; the content is untrusted. `plan` adds the platform's keys again.
        """
        return content

    def credential(self, token: Sensitive[str]) -> tuple[str, Sensitive[str]]:
        """Return the header that our edge sends to the gateway instead of the caller's credential."""
        return "Authorization", Sensitive(f"Bearer {token.reveal()}")
