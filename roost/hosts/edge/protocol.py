"""The HTTP protocol of the server: requests for an agent's own address go to its gateway, all else to the application.

What decides is the Host header and the path as it was sent: `/v0` and what is under it belongs to the platform.
"""

from typing import ClassVar

from roost.hosts.address import HostAddress
from roost.hosts.client_address import client_address
from roost.hosts.edge.dependencies import ProxyDependencies
from roost.hosts.edge.guarded_http import GuardedHttpProtocol
from roost.hosts.edge.live_connections import LiveConnections
from roost.hosts.edge.proxy_exchange import ProxyExchange
from roost.hosts.edge.proxy_request import ProxyRequest
from roost.hosts.edge.queued_request import QueuedRequest
from roost.hosts.edge.request_head import RequestHead
from roost.hosts.url_map import is_platform_target
from roost.web.request_id import request_id
from roost.web.url_rule import HostKind


class EdgeHttpProtocol(GuardedHttpProtocol):
    traffic: ClassVar[LiveConnections]

    def _turn_for(self, facts: RequestHead) -> QueuedRequest | None:
        address = self.traffic.gate.addresses.parse(facts.host)
        if address is None or address.surface is not HostKind.AGENT or is_platform_target(self.url):
            return None
        keep_alive = self.parser.get_http_version() == "1.1" and self.parser.should_keep_alive()
        return ProxyExchange(
            self, self.traffic, self._asked(address, facts), keep_alive=keep_alive and not facts.websocket
        )

    def _asked(self, address: HostAddress, facts: RequestHead) -> ProxyRequest:
        assert address.agent_id is not None
        named = dict(reversed(self.headers))
        forwarded_for = named.get(b"x-forwarded-for", b"").decode("latin-1")
        return ProxyRequest(
            address=address,
            agent_id=address.agent_id,
            method=self.parser.get_method().decode(),
            target=self.url,
            version=self.parser.get_http_version(),
            headers=self.headers,
            facts=facts,
            peer=client_address(self.client[0] if self.client else "", forwarded_for, self.traffic.gate.trusted),
            request_id=request_id(named.get(b"x-request-id")),
        )


def edge_protocol(gate: ProxyDependencies) -> type[EdgeHttpProtocol]:
    """The class to give to uvicorn as `http`. Its `traffic.close()` lets go of what is open, at the server's end."""

    class BoundProtocol(EdgeHttpProtocol):
        bounds = gate.bounds
        traffic = LiveConnections(gate)

    return BoundProtocol
