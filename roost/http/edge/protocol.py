"""The HTTP protocol of the public port: requests for an agent go to its gateway, all others to the application."""

import asyncio
import socket
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from http import HTTPStatus
from typing import ClassVar, cast

from roost.agents.lifecycle.hosts.agent_servers import AgentServers, is_upload, upload_subject
from roost.agents.lifecycle.hosts.model import Host
from roost.core import ids
from roost.core.problem import Problem, ServiceUnavailable, TooManyRequests, error_code
from roost.core.rate_limit import RateLimitExceeded
from roost.http.edge.dependencies import ProxyDependencies, ProxyLimits
from roost.http.edge.forwarded_head import HOPS, select_cookies
from roost.http.edge.gateway_pool import GatewayPool
from roost.http.edge.pending_exchange import PendingExchange
from roost.http.edge.proxy_exchange import ProxyExchange
from roost.http.edge.proxy_request import ProxyRequest, Upstream, find_upstream
from roost.http.server.asgi_exchange import AsgiExchange
from roost.http.server.http_connection import Exchange, HttpConnection
from roost.http.server.own_response import response_bytes
from roost.http.server.request_head import InvalidRequestHead, RequestHead
from roost.http.stack.address import cookie_prefix
from roost.http.stack.client_address import OWN_PROXY, client_address, is_trusted, limited_client
from roost.http.stack.url_map import find_path_agent, find_path_upload, is_platform_target
from roost.http.storage_gateway.response_cache import CachedExchange, ResponseCache, cache_key
from roost.identity.auth_request import AuthRequest
from roost.net.addresses import Network, is_loopback, peer_network
from roost.web import errors
from roost.web.access_log import request_id
from roost.web.url_rule import ErrorForm, HostAddress

_MAX_HOPS = 3  # more servers than believe at one moment that another one has an agent


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


class EdgeHttpProtocol(HttpConnection):
    limits: ClassVar[ProxyLimits]  # pyright: ignore[reportIncompatibleVariableOverride] - has those of a connection
    pool: ClassVar[GatewayPool]
    counter: ClassVar[ConnectionCounter]
    cache: ClassVar[ResponseCache]
    is_peer = False
    """Whether another server passes requests on by this connection; set before it is made."""
    is_draining: ClassVar[bool] = False
    """Whether each connection ends with its next response."""
    _is_counted = False
    _counted_peer = ""

    def connection_made(self, transport: asyncio.Transport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride] - as in the base class
        super().connection_made(transport)
        self._is_counted = True
        if self.is_peer or transport.get_extra_info("socket").family == socket.AF_UNIX:
            self.client = (OWN_PROXY, 0)
        self._counted_peer = self._peer
        if (problem := self.counter.add(self._peer, len(self.server_state.connections))) is not None:
            self._refuse_connection(problem)

    def on_headers_complete(self) -> None:
        ports, port = self.pool.dependencies.addresses.agent_ports, self.local_port
        if ports is not None and port is not None and port in ports:
            self._headers = select_cookies(self._headers, cookie_prefix(port))
        super().on_headers_complete()

    @classmethod
    def drain_connections(cls) -> None:
        """End each connection with its next response, because the server stops soon."""
        cls.is_draining = True

    def _dispatch(self) -> None:
        super()._dispatch()
        if self.is_draining and self._reading is not None:
            self._reading.disable_keep_alive()

    def create_exchange(self, head: RequestHead) -> Exchange | None:
        dependencies = self.pool.dependencies
        if self._peer == OWN_PROXY:
            self._count_for(self._client_address(head))
        address = dependencies.addresses.parse(head.headers.host, self.local_port)
        own = self._create_own_exchange(head, address)
        if dependencies.servers is None or address is None:
            return own
        agent_id, token = address.agent_id or find_path_agent(head.target), find_path_upload(head.target)
        if agent_id is None and token is None:
            return own
        subject = agent_id or upload_subject(token or "")
        hops = int(head.headers.fields.get(HOPS.decode(), "0")) if self.is_peer else 0
        pass_on = partial(self._create_proxy_exchange, head, address, keep_alive=self._keeps_alive(head), hops=hops)
        # Who passes a request on may believe what is no longer so: the database says who has the agent.
        if hops or (location := dependencies.servers.recall(subject)) is None:
            find_other = partial(self._find_other, dependencies.servers, subject, hops, pass_on)
            return PendingExchange(self, own, find_other, self._hand_over_late)
        return own if location.server is None else pass_on(_other_server(subject, location.server))

    async def _find_other(
        self, servers: AgentServers, subject: str, hops: int, pass_on: Callable[[Upstream], Exchange]
    ) -> Exchange | None:
        """Return what passes a request on to the server of its subject; None if this server has to answer."""
        try:
            server = (await servers.find(subject)).server
        except Problem:  # the application answers with the problem of the database
            return None
        return None if server is None or hops >= _MAX_HOPS else pass_on(_other_server(subject, server))

    def _create_own_exchange(self, head: RequestHead, address: HostAddress | None) -> Exchange | None:
        is_platform = address is not None and address.domain is None and is_platform_target(head.target)
        if address is None or address.agent_id is None or is_platform:
            return None if head.websocket else self._create_platform_exchange(head, address)
        if head.method == b"TRACE":  # a gateway could echo the credential that the edge adds
            raise InvalidRequestHead(HTTPStatus.METHOD_NOT_ALLOWED, "Method not allowed")
        try:
            upstream = find_upstream(self.pool.dependencies.find_route, address, head.target.partition(b"?")[0])
        except Problem as problem:
            raise InvalidRequestHead(HTTPStatus.BAD_REQUEST, problem.message, error_code(type(problem))) from None
        return self._create_proxy_exchange(head, address, upstream, keep_alive=self._keeps_alive(head))

    def _create_proxy_exchange(
        self, head: RequestHead, address: HostAddress, upstream: Upstream, *, keep_alive: bool, hops: int = 0
    ) -> ProxyExchange:
        fields, client = head.headers.fields, self._client_address(head)
        auth = AuthRequest(
            host=address,
            method=head.method.decode(),
            headers=fields,
            query=head.target.partition(b"?")[2].decode(),
            peer=client,
            upgrade=head.websocket,
            limited_client=self._limited_client(client, head),
        )
        request = ProxyRequest(head, upstream, auth, request_id(fields.get("x-request-id")), self.local_port, hops)
        return ProxyExchange(self, self.pool, request, keep_alive=keep_alive)

    def _keeps_alive(self, head: RequestHead) -> bool:
        return head.headers.version == "1.1" and self.parser.should_keep_alive() and not head.websocket

    def _hand_over_late(self, rest: bytes) -> None:
        """Give the connection to the application's WebSocket after it waited."""
        self._exchanges.clear()
        if not self._fits_handshake():
            self._reject(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "Request header fields too large")
            return
        self._hand_over()
        if rest:
            cast("asyncio.Protocol", self.transport.get_protocol()).data_received(rest)

    def _create_platform_exchange(self, head: RequestHead, address: HostAddress | None) -> Exchange:
        if address is None or address.gateway is None or not self.parser.should_keep_alive():
            return AsgiExchange(self, head)
        if (key := cache_key(head)) is None:
            return AsgiExchange(self, head)
        if (cached := self.cache.find(key)) is None:
            return AsgiExchange(self, head, {"cache_key": key})
        dependencies, client = self.pool.dependencies, self._limited_client(self._client_address(head), head)
        try:
            usage = dependencies.rate_limits.start_request(client, address.gateway)
        except RateLimitExceeded:
            return AsgiExchange(self, head)  # the application answers that
        return CachedExchange(self, head, cached, dependencies.observe, usage)

    def _client_address(self, head: RequestHead) -> str:
        forwarded_for = head.headers.fields.get("x-forwarded-for", "")
        return client_address(self._peer, forwarded_for, self.pool.dependencies.trusted)

    def _limited_client(self, client: str, head: RequestHead) -> str | None:
        trusted, limits = self.pool.dependencies.trusted, self.pool.dependencies.rate_limits
        names = head.headers.fields
        return limited_client(client, self._peer, names, trusted, limits_loopback=limits.limits_loopback)

    @property
    def _peer(self) -> str:
        return self.client[0] if self.client else ""

    def _count_for(self, client: str) -> None:
        """Count a connection of our own proxy for the client of its request. Raises InvalidRequestHead."""
        if client == self._counted_peer:
            return
        self.counter.remove(self._counted_peer)
        self._counted_peer = client
        if (problem := self.counter.add(client, 0)) is not None:
            raise InvalidRequestHead(HTTPStatus.TOO_MANY_REQUESTS, problem.message, error_code(type(problem)))

    def _refuse_connection(self, problem: Problem) -> None:
        """Answer before any request is read, and close; reset the connection if many others are refused."""
        if len(self.counter.rejected) >= self.limits.rejections:
            self.transport.abort()
            return
        self.counter.rejected.add(self)
        response = errors.problem_response(ErrorForm.AGENTS, problem)
        self._send_rejection(response_bytes(response, ids.new_id(), close=True))

    def _release(self) -> None:
        super()._release()
        if self._is_counted:
            self._is_counted = False
            self.counter.remove(self._counted_peer)
            self.counter.rejected.discard(self)


def _other_server(subject: str, server: Host) -> Upstream:
    return Upstream("" if is_upload(subject) else subject, is_protected=False, server=server)


def edge_protocol(dependencies: ProxyDependencies) -> type[EdgeHttpProtocol]:
    """Return the class for uvicorn's `http`. Call its `pool.close()` at the end of the server."""

    class BoundProtocol(EdgeHttpProtocol):
        limits = dependencies.limits
        pool = GatewayPool(dependencies)
        writer = pool.writer
        cache = dependencies.cache
        counter = ConnectionCounter(dependencies.limits, dependencies.trusted)

    return BoundProtocol
