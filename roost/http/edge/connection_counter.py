"""Limit the connections of the public port, in all and by peer."""

from collections import Counter
from collections.abc import Sequence

from roost.core.problem import Problem, ServiceUnavailable, TooManyRequests
from roost.http.edge.dependencies import ProxyLimits
from roost.http.stack.client_address import is_trusted
from roost.net.addresses import Network, is_loopback, peer_network


class ConnectionLimitReached(ServiceUnavailable):
    message = "Too many open connections"


class PeerConnectionLimitReached(TooManyRequests):
    message = "Too many open connections from your address"


class ConnectionCounter:
    """Open connections by peer.

    Peers in `trusted` are proxies, which carry the connections of many clients, and any program on loopback may be one:
    only the limit of all connections applies to them.
    """

    def __init__(self, limits: ProxyLimits, trusted: Sequence[Network]) -> None:
        self._limits, self._trusted = limits, trusted
        self._by_peer = Counter[str]()
        self.rejected = set[object]()
        """Connections that get a rejection and are then closed."""

    def add(self, peer: str, total: int) -> Problem | None:
        """Count a connection, one of `total`; return the reason for its rejection, if any."""
        key = peer_network(peer)
        self._by_peer[key] += 1
        if total > self._limits.connections:
            return ConnectionLimitReached(retry_after=1)
        if self._by_peer[key] <= self._limits.peer_connections or is_loopback(peer) or is_trusted(peer, self._trusted):
            return None
        return PeerConnectionLimitReached(retry_after=1)

    def remove(self, peer: str) -> None:
        """Forget a connection that `add` counted."""
        key = peer_network(peer)
        self._by_peer[key] -= 1
        if not self._by_peer[key]:
            del self._by_peer[key]
