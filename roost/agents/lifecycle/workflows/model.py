"""Data of the workflows: requests and results, an agent's container, and what leads out of it."""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from sqlalchemy import Connection

from roost.agents.registry.model import Agent, AgentProfile
from roost.agents.setup.channels.model import ChannelRequest
from roost.agents.workspace.snapshots.model import Snapshot
from roost.core.problem import InvalidInput, Problem
from roost.core.sanitize import hide_paths
from roost.core.sensitive import Sensitive
from roost.drivers.engine.abilities.channels import ChannelSetup
from roost.drivers.runtime.contract import (
    API_PORT,
    PROXY_PORT,
    ContainerLimits,
    ContainerSpec,
    EngineVersion,
    RuntimeFailed,
)

API_RELAY = "api"
PROXY_RELAY = "proxy"
HUB_URL = f"http://127.0.0.1:{API_PORT}"
MODEL_URL = f"{HUB_URL}/v1"
PROXY_URL = f"http://127.0.0.1:{PROXY_PORT}"


START = "agent.start"
DELETE = "agent.delete"
UPDATE = "agent.update"
MOVE = "agent.move"
START_RETRIES = 3
"""Further attempts at a start whose container disappeared, or that met another temporary failure."""
START_GRACE = 30.0
"""Seconds that a start may take beyond the engine's deadline, most of them for the container."""
QUEUE_SECONDS = 600.0
"""Seconds that a request waits until its start begins, because a machine starts few agents at once."""


class AgentRelays(Protocol):
    """Sockets that lead out of a container: opened before it starts, closed when it is gone."""

    async def open(self, agent_id: str) -> None: ...
    async def close(self, agent_id: str) -> None: ...
    def list_open(self) -> Collection[str]: ...
    def drain_connections(self) -> bool: ...
    async def close_all(self) -> None: ...


@dataclass(frozen=True)
class TrustedAuthorities:
    """Certificate authorities that containers trust in addition to the system's: files by path, and variables."""

    files: Mapping[str, bytes] = field(default_factory=dict[str, bytes])
    env: Mapping[str, str] = field(default_factory=dict[str, str])


async def _do_nothing() -> None:
    pass


@dataclass(frozen=True)
class StartupInputs:
    """Models, secrets and channels that an agent's gateway is started with.

    models: ids that the model gateway serves to the agent, the default first.
    all_models: False if a provider did not list its models, so that `models` is incomplete.
    environment: secrets and variables by name.
    on_ready: called when the gateway runs with these inputs.
    """

    models: Sequence[str]
    all_models: bool = True
    environment: Mapping[str, Sensitive[str]] = field(default_factory=dict[str, Sensitive[str]])
    channels: Mapping[str, ChannelSetup] = field(default_factory=dict[str, ChannelSetup])
    on_ready: Callable[[], Awaitable[None]] = _do_nothing


@dataclass(frozen=True)
class CreateAgent:
    """Request to create an agent; it begins with the workspace of a snapshot or template if one is given.

    profile: an empty name, and None, leave a field to the template. engine_version: preferred if it is installed.
    template: its id or slug. attach_secrets: attach the tenant's own secrets of the names that the template asks for.
    skill_cids: references of skills. acknowledges_skills: whether those that are found dangerous are attached all the
    same.
    """

    profile: AgentProfile
    engine: str | None = None
    secret_ids: Sequence[str] = ()
    snapshot_cid: str | None = None
    channels: Mapping[str, ChannelRequest] = field(default_factory=dict[str, ChannelRequest])
    engine_version: str | None = None
    skill_cids: Sequence[str] = ()
    acknowledges_skills: bool = False
    template: str | None = None
    attach_secrets: bool = False


@dataclass(frozen=True)
class LaunchSource:
    """What a new agent is made of: by the request alone, or by a snapshot, a template or an archive, too.

    request: with what it leaves to the source. snapshot: the agent's first one; without it the workspace is empty.
    origin_id: agent whose skills and routes the new one gets. fill: writes what else the source has, in the transaction
    that creates the agent.
    """

    request: CreateAgent
    snapshot: Snapshot | None = None
    origin_id: str | None = None
    fill: Callable[[Connection, Agent], None] | None = None


@dataclass(frozen=True)
class UpdateResult:
    """Result of an update; without success the agent runs with its previous version and state."""

    success: bool
    previous_version: str
    new_version: str
    output: str


@dataclass(frozen=True)
class MoveResult:
    """Result of a move; without success the agent runs where it was, in the runtime `runtime`."""

    success: bool
    runtime: str
    output: str


def container_spec(
    agent_id: str,
    engine: EngineVersion | None,
    limits: ContainerLimits,
    trust: TrustedAuthorities = TrustedAuthorities(),
    *,
    delete_only: bool = False,
) -> ContainerSpec:
    """Return an agent's container: its engine, the two relays, and the proxy variables for all programs in it."""
    proxies = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"), PROXY_URL)
    local = {"NO_PROXY": "127.0.0.1,localhost,::1"}
    both_cases = {name.lower(): value for name, value in (proxies | local).items()}
    base = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8", "AGENT_ID": agent_id, "NO_COLOR": "1"}
    base["NODE_USE_ENV_PROXY"] = "1"  # Node ignores the proxy variables without it
    base |= dict.fromkeys(("CLAWHUB_URL", "CLAWHUB_REGISTRY"), HUB_URL)  # of OpenClaw's client, of ClawHub's
    return ContainerSpec(
        agent_id=agent_id,
        engine=engine,
        env={**base, **proxies, **local, **both_cases, **trust.env},
        files=trust.files,
        relays={API_PORT: API_RELAY, PROXY_PORT: PROXY_RELAY},
        egress=PROXY_RELAY,
        limits=limits,
        delete_only=delete_only,
    )


class AgentStartFailed(Problem):
    """Created, but not started; the response carries the agent, which is listed and can be restarted."""

    message = "Gateway failed to start"

    def __init__(self, agent: Agent) -> None:
        super().__init__()
        self.agent = agent


class AgentRestartFailed(Problem):
    message = "Restart failed"


class DiskLimitReached(Problem):
    """The agent occupies too much of the disk; its container runs, and lets files only be read and deleted."""

    message = "The agent uses too much disk space"


class UnknownEngine(InvalidInput):
    message = "Unknown engine"


class UnknownRuntime(InvalidInput):
    message = "Unknown runtime"
    field = "to"


def public_reason(error: Exception) -> str:
    """Return why an agent did not start, as its users may see it: without paths of the server's machine."""
    if isinstance(error, RuntimeFailed):
        return hide_paths(error.message)
    return error.message if isinstance(error, Problem) else "Internal error"


class AgentDeleteFailed(Problem):
    """The agent is hidden, and its remains are removed in the background."""

    message = "Delete failed"
