"""Where the edge carries a request: to an agent's gateway, or to a port of the agent's own programs."""

from typing import NamedTuple

from roost.agents.routes.model import PathRoute


class Upstream(NamedTuple):
    """Destination of a request; `route` leads to it, None for the gateway."""

    agent_id: str
    route: PathRoute | None = None

    @property
    def port(self) -> int | None:
        """The port of the agent's own program; None for the gateway's."""
        return None if self.route is None else self.route.port

    @property
    def prefix(self) -> bytes:
        """The part of the path that the program does not get."""
        return b"" if self.route is None else self.route.prefix.encode()

    @property
    def is_protected(self) -> bool:
        """Whether a request needs the gateway token."""
        return self.route is None or self.route.is_protected
