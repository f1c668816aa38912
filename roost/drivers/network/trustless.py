"""Trustless gateways (ipfs/specs, trustless gateway), which provide content as CARs over HTTP.

The operator's gateways are reached over the process's own network with its proxy and certificate variables; host nodes
that a tenant names only through a guarded transport. Redirects are not followed.
"""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AsyncExitStack

import httpx2

from roost.core.machine.network_advice import describe_network_error
from roost.core.problem import Problem
from roost.drivers.network.contract import ContentNotAtSource, ContentSource, PublicNetwork, SourceFailed, http_origin
from roost.net.guarded_transport import is_loopback_url

CONNECT_SECONDS, IDLE_SECONDS = 10.0, 30.0
"""Timeouts: to connect, and between two chunks."""
_MISSING_STATUSES = frozenset({400, 403, 404, 410, 412, 451})
_HEADERS = {
    "Accept": "application/vnd.ipld.car; version=1; order=dfs; dups=n",
    "Accept-Encoding": "identity",
    "User-Agent": "roost",
}
_QUERY = {"format": "car", "dag-scope": "all"}
Transport = Callable[[], httpx2.AsyncBaseTransport]


class TrustlessNetwork(PublicNetwork):
    def __init__(self, gateways: Sequence[str], tenant_transport: Transport, *, idle: float = IDLE_SECONDS) -> None:
        """`tenant_transport` creates the transport to hosts that tenants name, which may refuse with a Problem."""
        self._gateways = gateways
        self._tenant_transport = tenant_transport
        self._idle = idle

    def sources(self, hosts: Sequence[str] = ()) -> Sequence[ContentSource]:
        named = dict.fromkeys(found for host in hosts if (found := http_origin(host)))
        return [
            *(_GatewaySource(url, self._idle, self._tenant_transport) for url in named),
            *(_GatewaySource(url, self._idle) for url in self._gateways),
        ]


class _GatewaySource(ContentSource):
    def __init__(self, url: str, idle: float, tenant_transport: Transport | None = None) -> None:
        super().__init__(url)
        self._url = url
        self._idle = idle
        self._tenant_transport = tenant_transport

    async def car(self, cid: str) -> AsyncGenerator[bytes]:
        async with AsyncExitStack() as stack:
            try:
                client = await stack.enter_async_context(self._client())
                url = f"{self._url}/ipfs/{cid}"
                response = await stack.enter_async_context(client.stream("GET", url, params=_QUERY))
                _check_response(response)
                pieces = response.aiter_raw()
                while (piece := await anext(pieces, None)) is not None:
                    yield piece
            except httpx2.HTTPError as error:
                raise SourceFailed(f"{self.name}: {describe_network_error(error)}") from None
            except (httpx2.InvalidURL, UnicodeError):
                raise SourceFailed(f"{self.name}: invalid URL") from None
            except (ContentNotAtSource, SourceFailed):
                raise
            except Problem as problem:  # of the transport
                raise SourceFailed(problem.message) from None

    def _client(self) -> httpx2.AsyncClient:
        timeout = httpx2.Timeout(self._idle, connect=CONNECT_SECONDS)
        if self._tenant_transport is None:
            return httpx2.AsyncClient(headers=_HEADERS, timeout=timeout, trust_env=not is_loopback_url(self._url))
        transport = self._tenant_transport()
        return httpx2.AsyncClient(headers=_HEADERS, timeout=timeout, transport=transport, trust_env=False)


def _check_response(response: httpx2.Response) -> None:
    if response.status_code in _MISSING_STATUSES:
        raise ContentNotAtSource
    if not response.is_success:
        raise SourceFailed(f"The gateway answered {response.status_code}")
    if "application/vnd.ipld.car" not in response.headers.get("content-type", ""):
        raise SourceFailed("The gateway's answer is not a CAR")
