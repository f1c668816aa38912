"""A transport for HTTP clients of ours that go where a tenant sends them, a model provider's address for one.

Each request, and so each hop of a redirect, is judged by the rules for agents' own connections and goes to an address
that was judged, by its number. The name stays in the `Host` header and in the check of the certificate. Proxies of the
process's environment are not used: they would resolve the name once more, where nobody judges the answer.
"""

import ssl

import httpx2

from roost.agents.egress.dialer import PublicDialer
from roost.agents.egress.errors import (
    AddressRefused,
    ConnectTimeout,
    EgressProblem,
    EncryptionRequired,
    HostRefused,
    HostUnreachable,
    InvalidProxyRequest,
    PortRefused,
)
from roost.agents.egress.host_port import HostPort, parse
from roost.agents.egress.policy import Address, EgressPolicy

_LIMITS = httpx2.Limits(max_connections=64, max_keepalive_connections=8)
_PORTS = {"http": 80, "https": 443}
_TRIED = 4
_CONNECT = 10.0
"""Addresses of one name, and seconds for all of them together."""


class GuardedTransport(httpx2.AsyncBaseTransport):
    """Raises EgressProblem beside what httpx2's own transport raises. One for each origin: see `_pinned`."""

    def __init__(self, dialer: PublicDialer, agent_id: str, trust: ssl.SSLContext) -> None:
        """`agent_id` is on whose behalf names are resolved; `trust` is shared, because making one is slow."""
        self._dialer = dialer
        self._agent_id = agent_id
        self._inner = httpx2.AsyncHTTPTransport(verify=trust, trust_env=False, limits=_LIMITS)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        target = _target(request.url)
        addresses, port = await self._dialer.places(self._agent_id, target)
        tried = addresses[:_TRIED]
        problem: type[EgressProblem] = HostUnreachable
        for address in tried:
            try:
                return await self._inner.handle_async_request(_pinned(request, target, address, port, len(tried)))
            except httpx2.ConnectTimeout:  # nothing of the request has been sent
                problem = ConnectTimeout
            except httpx2.ConnectError as error:
                if _is_certificate(error):
                    raise
        raise problem(target.host)

    async def aclose(self) -> None:
        await self._inner.aclose()


def judge(policy: EgressPolicy, url: str) -> None:
    """Whether an address may be kept, to be gone to later: all that can be told without asking for its name.

    Without TLS only where the operator named the host, or opened the network of the address that it is. Raises
    EgressProblem, and httpx2.InvalidURL.
    """
    parsed = httpx2.URL(url)
    target = _target(parsed)
    if not policy.admits_host(target.host):
        raise HostRefused(target.host)
    if not policy.admits_port(target.port):
        raise PortRefused(target.host, target.port)
    if target.address and not policy.admits_address(target.address):
        raise AddressRefused(target.host)
    opened = target.host in policy.hosts or (target.address is not None and policy.opens(target.address))
    if parsed.scheme != "https" and not opened:
        raise EncryptionRequired


def _target(url: httpx2.URL) -> HostPort:
    if url.scheme not in _PORTS or url.userinfo:
        raise InvalidProxyRequest("The address is not one of HTTP")
    return parse(url.netloc.decode("ascii"), _PORTS[url.scheme])


def _pinned(request: httpx2.Request, target: HostPort, address: Address, port: int, tries: int) -> httpx2.Request:
    """The same request, for the address alone. Connections are shared by address, so also by all names behind it."""
    timeout = {**request.extensions.get("timeout", {})}
    timeout["connect"] = min(timeout.get("connect") or _CONNECT, _CONNECT) / tries
    return httpx2.Request(
        request.method,
        request.url.copy_with(host=str(address), port=port),
        headers=request.headers,
        stream=request.stream,
        extensions={**request.extensions, "timeout": timeout, "sni_hostname": target.host},
    )


def _is_certificate(error: BaseException | None) -> bool:
    """Whether the other side was reached and is not who it should be: another address would not mend that."""
    while error is not None:
        if isinstance(error, ssl.SSLError):
            return True
        error = error.__cause__ or error.__context__
    return False
