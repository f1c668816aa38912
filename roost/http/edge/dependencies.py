"""The limits of the edge, and its dependencies on the rest of the system."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from roost.agents.lifecycle.hosts.agent_servers import AgentServers
from roost.agents.network.routes.model import PathRoute
from roost.core.problem import ServiceUnavailable
from roost.core.sensitive import Sensitive
from roost.drivers.runtime.contract import Stream
from roost.http.server.request_head import ConnectionLimits
from roost.http.stack.address import HostAddresses
from roost.http.stack.client_address import Network
from roost.http.stack.rate_limits import RateLimits
from roost.http.storage_gateway.response_cache import ResponseCache
from roost.identity.auth_request import AuthRequest
from roost.identity.caller import Caller
from roost.web.access_log import Observe


class GatewayUnreachable(ServiceUnavailable):
    """The agent's gateway did not accept a connection in time."""

    message = "The agent does not answer"


class TooManyStreams(ServiceUnavailable):
    """The agent has the maximum number of open connections."""

    message = "Too many open connections to this agent"


@dataclass(frozen=True)
class ProxyLimits(ConnectionLimits):
    """Times in seconds, sizes in bytes."""

    connect: float = 5.0
    body_idle: float = 30.0
    body_grace: float = 60.0
    response_head: float = 120.0
    idle: float = 600.0
    spare: float = 60.0  # for which an idle connection to a gateway is kept
    spares: int = 64
    streams: int = 256  # connections to one agent's gateway
    server_streams: int = 3072  # connections to another server, for all of its agents
    connections: int = 4096  # of all clients to the public port
    peer_connections: int = 512  # of one client
    rejections: int = 64  # connections over these limits that get a response; others are reset


@dataclass(frozen=True)
class ProxyDependencies:
    """The rest of the system as the edge sees it.

    recall: tells at once, without I/O, the caller of a request that is known to have a valid credential.
    admit: the same with I/O, if `recall` does not know it; raises a Problem for a request without a valid credential.
    find_route: tells at once, without I/O, to which port a path on the agent's address leads; None for its gateway.
      Raises a Problem.
    dial: opens a connection to a port in the agent's container, None for its gateway's. Raises a Problem or OSError.
    credential: the header by which the agent's engine recognises the edge; asked once for each connection.
    record_use: called with the agent of each request that reaches it, and once a second of messages; never raises.
    subscribe: registers a listener for agents whose connections have to be closed.
    subscribe_routes: registers a listener for agents whose routes have changed, and for domains that have.
    observe: called for each finished request; fast, and never raises.
    cache: holds responses of storage gateways.
    trusted: the proxies whose `X-Forwarded-For` is believed.
    servers: where the agents are that other servers have; None if there are no other servers.
    """

    addresses: HostAddresses
    recall: Callable[[AuthRequest], Caller | None]
    admit: Callable[[AuthRequest], Awaitable[Caller]]
    find_route: Callable[[str, bytes], PathRoute | None]
    dial: Callable[[str, int | None], Awaitable[Stream]]
    credential: Callable[[str], Awaitable[tuple[str, Sensitive[str]]]]
    record_use: Callable[[str], None]
    subscribe: Callable[[Callable[[str], None]], None]
    subscribe_routes: Callable[[Callable[[str], None]], None]
    observe: Observe
    cache: ResponseCache
    trusted: Sequence[Network] = ()
    servers: AgentServers | None = None
    limits: ProxyLimits = field(default_factory=ProxyLimits)
    rate_limits: RateLimits = field(default_factory=RateLimits)
