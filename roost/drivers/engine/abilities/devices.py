"""Device pairing: programs elsewhere (a phone, a browser, a node) that connect to an agent.

The engine keeps the devices. An unknown device with the right token waits until a user approves it; later the engine
recognizes it by its key. Devices report their own properties, which are untrusted.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from roost.core.problem import NotFound
from roost.drivers.engine.abilities.agent_context import AgentContext


class DeviceRequestNotFound(NotFound):
    """No device waits under this id: it never existed, is already decided, or belongs to another agent."""

    message = "Device request not found"


@dataclass(frozen=True)
class Device:
    """A device as it describes itself. remote_ip: where it last connected from; behind our edge, the client's own."""

    device_id: str
    display_name: str | None = None
    platform: str | None = None
    client_id: str | None = None
    client_mode: str | None = None
    role: str | None = None
    scopes: Sequence[str] = ()
    remote_ip: str | None = None


@dataclass(frozen=True)
class PendingDevice:
    """A device that waits for approval. is_repair: it is already paired, and requests more permissions."""

    request_id: str
    device: Device
    requested_at: datetime | None = None
    is_repair: bool = False


@dataclass(frozen=True)
class PairedDevice:
    device: Device
    paired_at: datetime | None = None
    last_seen_at: datetime | None = None
    connected: bool | None = None


@dataclass(frozen=True)
class DeviceList:
    pending: Sequence[PendingDevice]
    paired: Sequence[PairedDevice]


class DeviceAbility(ABC):
    """Ability to pair devices; each call takes at most 15 s. Raises EngineFailed, and the errors of dialling."""

    @abstractmethod
    async def list(self, agent: AgentContext) -> DeviceList:
        """Return pending and paired devices, at most 200 of each."""

    @abstractmethod
    async def approve(self, agent: AgentContext, request_id: str) -> None:
        """Pair a pending device with the permissions it requested. Raises DeviceRequestNotFound."""
