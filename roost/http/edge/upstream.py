"""Where the edge carries a request: to an agent's gateway, or to a port of the agent's own programs."""

from collections.abc import Callable
from typing import NamedTuple

from roost.agents.network.routes.model import PathRoute
from roost.http.stack.address import HostAddress

FindRoute = Callable[[str, bytes], PathRoute | None]


class Upstream(NamedTuple):
    """Destination of a request; `route` leads to it, None for the gateway. domain: the registered name of the host."""

    agent_id: str
    route: PathRoute | None = None
    domain: str | None = None

    @property
    def source(self) -> str | None:
        """The agent with the route, or the domain, whose change ends the request; None if neither led here."""
        return self.domain or (None if self.route is None else self.agent_id)

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


def find_upstream(find_route: FindRoute, address: HostAddress, path: bytes) -> Upstream:
    """Return where a path at the address of an agent, or at one of its domains, leads. Raises a Problem."""
    if address.domain is not None:
        return Upstream(address.agent_id or "", address.route, address.domain)
    return Upstream(address.agent_id or "", find_route(address.agent_id or "", path))
