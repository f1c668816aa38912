"""What the edge asks of the rest of the system, and the bounds that it keeps."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from roost.core.problem import Problem, ProblemKind, ServiceUnavailable
from roost.core.sensitive import Sensitive
from roost.drivers.runtime.contract import Stream
from roost.hosts.address import HostAddresses
from roost.hosts.client_address import Network
from roost.identity.authenticator import AuthRequest
from roost.web.access_log import Observe


class GatewayUnreachable(Problem):
    """The agent's gateway did not take a connection in time."""

    kind = ProblemKind.UNAVAILABLE
    message = "The agent does not answer"


class TooManyStreams(ServiceUnavailable):
    """The agent has as many connections open as one agent may have."""

    message = "Too many open connections to this agent"


@dataclass(frozen=True)
class ProxyLimits:
    """Times in seconds, sizes in bytes."""

    head: int = 64 * 1024
    first_head: float = 10.0
    """Until a head that has begun, or the first one of a connection, is complete; also for a body nobody wants."""
    keep_alive: int = 75
    pipeline: int = 64
    """Requests that wait behind the one being served on one connection."""
    leftover: int = 64 * 1024**2
    """How much of a body is read and thrown away after its request was answered, before the connection is closed."""
    linger: float = 2.0
    connect: float = 5.0
    body_idle: float = 30.0
    body_grace: float = 60.0
    body_rate: int = 1024
    """Bytes a second that an upload has to reach on average once the grace is over, until the answer begins."""
    taking: float = 30.0
    """Within each such time a client has to take `body_rate` bytes a second of an answer of the platform that waits."""
    response_head: float = 120.0
    idle: float = 600.0
    spare: float = 60.0
    """How long an unused connection to a gateway is kept."""
    spares: int = 32
    streams: int = 256
    """Connections to one agent's gateway at a time."""
    tick: float = 0.5
    """How often times are looked at."""


@dataclass(frozen=True)
class ProxyDependencies:
    """The rest of the system as the edge sees it.

    admit: `Door.holder`, or the like: raises a Problem for whoever may not enter.
    dial: a new connection to the port of the agent's gateway. Raises a Problem (BoxGone, DialRefused ...) or OSError.
    credential: the header that the agent's engine wants to see; asked once for each connection.
    subscribe: `Gateways.subscribe`: tells when everything that is open for an agent has to be let go.
    observe: told of each request when it is over; must be quick and must not raise.
    trusted: the proxies whose `X-Forwarded-For` is believed.
    """

    addresses: HostAddresses
    admit: Callable[[AuthRequest], Awaitable[object]]
    dial: Callable[[str], Awaitable[Stream]]
    credential: Callable[[str], Awaitable[tuple[str, Sensitive[str]]]]
    subscribe: Callable[[Callable[[str], None]], None]
    observe: Observe
    trusted: Sequence[Network] = ()
    bounds: ProxyLimits = field(default_factory=ProxyLimits)
