"""HTTP transport for URLs that tenants name, such as webhooks and model providers.

Each request, and so each hop of a redirect, is checked by the rules for agents' own connections and goes to a checked
address as a number. The name stays in the `Host` header and in the certificate check. Proxies of the process's
environment are not used: they would resolve the name again without a check.
"""

import ssl
from collections.abc import Callable
from pathlib import Path

import httpx2

from roost.core.machine.network_advice import list_causes
from roost.net.addresses import Address, is_loopback
from roost.net.dialer import PublicDialer
from roost.net.errors import (
    AddressRefused,
    ConnectTimeout,
    EgressProblem,
    EncryptionRequired,
    HostUnreachable,
    InvalidTarget,
)
from roost.net.host_port import HostPort, parse_host_port
from roost.net.policy import EgressPolicy

_LIMITS = httpx2.Limits(max_connections=64, max_keepalive_connections=8)
_PORTS = {"http": 80, "https": 443}
_MAX_ATTEMPTS = 4  # addresses of one name
_CONNECT_SECONDS = 10.0  # for all of them together


class GuardedTransport(httpx2.AsyncBaseTransport):
    """Transport that reaches admitted addresses only.

    Raises EgressProblem beside httpx2's own errors. Use one for each origin: see `_pin_address`.
    """

    def __init__(self, dialer: PublicDialer, subject: str, trust: ssl.SSLContext) -> None:
        """`subject` is charged for name lookups; `trust` is shared, because making one is slow."""
        self._dialer = dialer
        self._subject = subject
        self._inner = httpx2.AsyncHTTPTransport(verify=trust, trust_env=False, limits=_LIMITS)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        target = parse_url_target(request.url)
        addresses, port = await self._dialer.resolve(self._subject, target)
        addresses = addresses[:_MAX_ATTEMPTS]
        problem: type[EgressProblem] = HostUnreachable
        for address in addresses:
            try:
                pinned = _pin_address(request, target, address, port, len(addresses))
                return await self._inner.handle_async_request(pinned)
            except httpx2.ConnectTimeout:  # nothing of the request has been sent
                problem = ConnectTimeout
            except httpx2.ConnectError as error:
                if any(isinstance(one, ssl.SSLError) for one in list_causes(error)):
                    raise  # the peer was reached, so another address would not help
        raise problem(target.host)

    async def aclose(self) -> None:
        await self._inner.aclose()


TransportFactory = Callable[[str], GuardedTransport]
"""Makes a transport on behalf of a subject: an agent, a tenant, or a part of the server."""


def transport_factory(dialer: PublicDialer, ca_file: Path | None) -> TransportFactory:
    """Return a factory whose transports share one store of authorities: the system's and those in `ca_file`."""
    trust = httpx2.create_ssl_context()
    if ca_file is not None:
        trust.load_verify_locations(ca_file)
    return lambda subject: GuardedTransport(dialer, subject, trust)


def check_url(policy: EgressPolicy, url: str) -> None:
    """Check a URL before it is stored, without resolving its name.

    Plain HTTP is allowed only when the operator named the host or opened the network of its address.
    Raises EgressProblem, httpx2.InvalidURL.
    """
    parsed = httpx2.URL(url)
    target = parse_url_target(url)
    policy.check_target(target)
    if target.address and not policy.admits_address(target.address):
        raise AddressRefused(target.host)
    opened = target.host in policy.hosts or (target.address is not None and policy.opens(target.address))
    if parsed.scheme != "https" and not opened:
        raise EncryptionRequired


def parse_url_target(url: httpx2.URL | str) -> HostPort:
    """Return the host and port of a URL. Raises InvalidTarget, httpx2.InvalidURL."""
    url = httpx2.URL(url)
    if url.scheme not in _PORTS or url.userinfo:
        raise InvalidTarget("The URL must start with http:// or https:// and contain no user name")
    return parse_host_port(url.netloc.decode("ascii"), _PORTS[url.scheme])


def _pin_address(request: httpx2.Request, target: HostPort, address: Address, port: int, tries: int) -> httpx2.Request:
    """Return the same request, sent to the address. Connections are pooled by address, so by all names behind it."""
    timeout = {**request.extensions.get("timeout", {})}
    timeout["connect"] = min(timeout.get("connect") or _CONNECT_SECONDS, _CONNECT_SECONDS) / tries
    return httpx2.Request(
        request.method,
        request.url.copy_with(host=str(address), port=port),
        headers=request.headers,
        stream=request.stream,
        extensions={**request.extensions, "timeout": timeout, "sni_hostname": target.host},
    )


def is_loopback_url(url: str) -> bool:
    """Tell whether the URL leads to this machine, by address or as `localhost` (RFC 6761): a proxy cannot reach it.

    Raises httpx2.InvalidURL.
    """
    host = httpx2.URL(url).host
    return host == "localhost" or host.endswith(".localhost") or is_loopback(host)
