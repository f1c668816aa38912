"""The HTTP protocol of the public port: requests for an agent go to its gateway, all others to the application."""

from typing import ClassVar

from roost.hosts.client_address import client_address
from roost.hosts.edge.dependencies import ProxyDependencies
from roost.hosts.edge.gateway_connection import LiveConnections
from roost.hosts.edge.guarded_http import GuardedHttpProtocol, QueuedRequest
from roost.hosts.edge.proxy_exchange import ProxyExchange
from roost.hosts.edge.proxy_request import ProxyRequest
from roost.hosts.edge.request_head import RequestHead
from roost.hosts.url_map import is_platform_target
from roost.web.request_id import request_id


class EdgeHttpProtocol(GuardedHttpProtocol):
    live: ClassVar[LiveConnections]

    def _queued_request(self, head: RequestHead) -> QueuedRequest | None:
        address = self.live.gate.addresses.parse(head.host)
        if address is None or address.agent_id is None or is_platform_target(head.target):
            return None
        fields = {name.decode(): value.decode("latin-1") for name, value in reversed(head.headers)}
        peer = self.client[0] if self.client else ""
        client = client_address(peer, fields.get("x-forwarded-for", ""), self.live.gate.trusted)
        named = fields.get("x-request-id")
        own_id = request_id(None if named is None else named.encode("latin-1"))
        request = ProxyRequest(address, address.agent_id, head, fields, client, own_id)
        keep_alive = head.version == "1.1" and self.parser.should_keep_alive() and not head.websocket
        return ProxyExchange(self, self.live, request, keep_alive=keep_alive)


def edge_protocol(gate: ProxyDependencies) -> type[EdgeHttpProtocol]:
    """Return the class for uvicorn's `http`. Call its `live.close()` at the end of the server."""

    class BoundProtocol(EdgeHttpProtocol):
        limits = gate.bounds
        live = LiveConnections(gate)

    return BoundProtocol
