"""Devices: programs elsewhere (a phone, a browser, a node) that want to talk to an agent, and those that may.

The engine keeps both lists. A device with the right token that the engine does not know waits until a person approves
it; the engine alone knows it again, by its key. What is listed here the devices said of themselves: it is hostile.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from roost.core.problem import Problem, ProblemKind
from roost.drivers.engine.abilities.agent_context import AgentContext


class DeviceRequestNotFound(Problem):
    """Nothing waits under that id: it never did, it is over, or it is another agent's."""

    kind = ProblemKind.MISSING
    message = "Device request not found"


@dataclass(frozen=True)
class Device:
    """What a device says of itself. `address` is where the gateway saw it last; behind our edge, the client's own."""

    device_id: str
    name: str | None = None
    platform: str | None = None
    client: str | None = None
    mode: str | None = None
    role: str | None = None
    scopes: Sequence[str] = ()
    address: str | None = None


@dataclass(frozen=True)
class PendingDevice:
    """A device that waits. `repair`: it is known, and asks for more than it has."""

    request_id: str
    device: Device
    asked_at: datetime | None = None
    repair: bool = False


@dataclass(frozen=True)
class PairedDevice:
    device: Device
    paired_at: datetime | None = None
    seen_at: datetime | None = None
    connected: bool | None = None


@dataclass(frozen=True)
class DeviceList:
    pending: Sequence[PendingDevice]
    paired: Sequence[PairedDevice]


class DeviceAbility(ABC):
    """Each call within 15 s. Raises EngineFailed, and what dialling raises."""

    @abstractmethod
    async def list(self, inside: AgentContext) -> DeviceList:
        """At most 200 of each kind."""

    @abstractmethod
    async def approve(self, inside: AgentContext, request_id: str) -> None:
        """Pair the device that waits under that id, with what it asked for. Raises NoSuchRequest."""
