"""Hosts: the servers of a deployment, each with a data folder of its own, and so with agents of its own."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from roost.core.problem import NotFound, ResourceConflict

HEARTBEAT_SECONDS = 10.0
HOST_TIMEOUT = timedelta(seconds=30)
"""Time without a heartbeat after which a server counts as gone."""


@dataclass(frozen=True)
class HostIdentity:
    """Identity of the server of a data folder.

    id: stored in the folder; a copy of the folder has it too.
    session: differs between a folder and its copies, and after a reboot.
    """

    id: str
    name: str
    folder: str
    session: str


@dataclass(frozen=True)
class Host(HostIdentity):
    """Registered server.

    seen_at: its last heartbeat by the database's clock, None after a clean stop.
    address: `host:port` at which other servers reach it.
    shared_runtime: name of its default runtime if servers with the same one can serve its agents, else None.
    is_leaving: it stops, and runs on until others have taken its agents.
    """

    started_at: datetime
    seen_at: datetime | None
    address: str | None = None
    shared_runtime: str | None = None
    is_leaving: bool = False

    def is_running(self, now: datetime) -> bool:
        """Return whether its heartbeat is recent; `now` is the time of the database, whose clock all servers share."""
        return self.seen_at is not None and self.seen_at > now - HOST_TIMEOUT


class HostNotFound(NotFound):
    message = "There is no such host"


class HostRunning(ResourceConflict):
    """The host cannot be removed, or another process has its identity."""

    message = "The host is running"
