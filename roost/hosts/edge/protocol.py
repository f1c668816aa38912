"""The HTTP protocol of the public port: requests for an agent go to its gateway, all others to the application."""

from typing import ClassVar

from roost.hosts.client_address import client_address
from roost.hosts.edge.asgi_exchange import AsgiExchange
from roost.hosts.edge.dependencies import ProxyDependencies
from roost.hosts.edge.gateway_pool import GatewayPool
from roost.hosts.edge.http_connection import Exchange, HttpConnection
from roost.hosts.edge.proxy_exchange import ProxyExchange
from roost.hosts.edge.proxy_request import ProxyRequest
from roost.hosts.edge.request_head import RequestHead
from roost.hosts.url_map import is_platform_target
from roost.identity.authenticator import AuthRequest
from roost.web.request_id import request_id


class EdgeHttpProtocol(HttpConnection):
    pool: ClassVar[GatewayPool]

    def create_exchange(self, head: RequestHead) -> Exchange | None:
        dependencies = self.pool.dependencies
        address = dependencies.addresses.parse(head.headers.host)
        if address is None or address.agent_id is None or is_platform_target(head.target):
            return None if head.websocket else AsgiExchange(self, head)
        fields = head.headers.fields
        peer = self.client[0] if self.client else ""
        auth = AuthRequest(
            host_kind=address.host_kind,
            method=head.method.decode(),
            headers=fields,
            query=head.target.partition(b"?")[2].decode(),
            peer=client_address(peer, fields.get("x-forwarded-for", ""), dependencies.trusted),
            agent_id=address.agent_id,
            origin=address.origin,
            upgrade=head.websocket,
        )
        request = ProxyRequest(head, address.agent_id, auth, request_id(fields.get("x-request-id")))
        keep_alive = head.headers.version == "1.1" and self.parser.should_keep_alive() and not head.websocket
        return ProxyExchange(self, self.pool, request, keep_alive=keep_alive)


def edge_protocol(dependencies: ProxyDependencies) -> type[EdgeHttpProtocol]:
    """Return the class for uvicorn's `http`. Call its `pool.close()` at the end of the server."""

    class BoundProtocol(EdgeHttpProtocol):
        limits = dependencies.limits
        pool = GatewayPool(dependencies)

    return BoundProtocol
