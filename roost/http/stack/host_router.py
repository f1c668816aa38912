"""Route each request by its Host header and path to a row of the URL map, before any other processing (decision 0050).

The scope gets a `RequestAddress`; authentication, limits and handlers learn the address of a request from there only.
On an agent's address the short paths of `/v0` refer to that agent. An ambiguous path is 404. The local address is for
programs of this machine; for all other clients it is the management address. Where the URL map allows it,
`X-HTTP-Method-Override` is the method of the request.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from urllib.parse import quote, unquote

from starlette.types import ASGIApp, Receive, Scope, Send

from roost.http.stack import url_map
from roost.http.stack.address import HostAddresses
from roost.http.stack.client_address import client_address, is_local_program, limited_client
from roost.net.addresses import Network
from roost.web import errors
from roost.web.url_rule import WEBSOCKET, HostAddress, HostKind, RequestAddress, UrlFamily, UrlRule, address_of

_GATEWAY_FAMILIES = frozenset({UrlFamily.CONTENT, UrlFamily.CONTENT_INDEX})
_FORWARDED = "A request from outside, with X-Forwarded-Host, does not open the agent's own API"
_UNKNOWN = HostAddress(HostKind.DOMAIN, "", domain="")
_AMBIGUOUS = (b"%2e", b"%2f", b"%5c", b"%25", b"%3f", b"%23")


class HostRouter:
    """Router that answers 404 unless the address serves the path; `trusted` proxies may set `X-Forwarded-For`.

    limits_loopback: whether limits of clients apply to programs on this machine, too.
    """

    def __init__(
        self, app: ASGIApp, addresses: HostAddresses, trusted: Sequence[Network] = (), *, limits_loopback: bool = False
    ) -> None:
        self._app = app
        self._addresses = addresses
        self._trusted = trusted
        self._limits_loopback = limits_loopback

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in {"http", "websocket"}:
            await self._app(scope, receive, send)
        elif (method := self._route(scope)) is None:
            await errors.error_response(scope, 404, "Not found")(scope, receive, send)
        elif scope["type"] == "http" and _is_passed_on(scope):
            await errors.error_response(scope, 403, _FORWARDED)(scope, receive, send)
        elif scope["type"] == "http" and method != scope["method"]:
            called = {**scope, "method": method}  # the connection still writes the response of the method that was sent
            try:
                await self._app(called, receive, send)
            finally:
                scope["route"] = called.get("route")  # for the access log
        else:
            await self._app(scope, receive, send)

    def _route(self, scope: Scope) -> str | None:
        """Put the address of the request into the scope, visible to outer middleware.

        Return the method that counts, None if the address does not serve the path.
        """
        state = scope.get("state", {})
        host = self._find_host(scope, state.get("relay_agent"))
        if host.is_shared:
            host = self._enter_gateway(scope, host)
        method, rule = _find_rule(scope)
        has_dashboard = host.session_cookie is not None
        if host.cid is not None:
            rule = url_map.CONTENT
        elif has_dashboard and rule.family in _GATEWAY_FAMILIES:
            rule = url_map.DASHBOARD  # the same paths, at a host without content
        elif has_dashboard and host.kind is HostKind.MANAGEMENT and rule.family is UrlFamily.STORAGE:
            host = replace(host, kind=HostKind.STORAGE)
        if not _is_served(scope, rule, host):
            nowhere = HostAddress(HostKind.DOMAIN, "", domain=host.domain)
            scope["state"] = {**state, "address": RequestAddress(rule, nowhere)}
            return None
        client = f"relay {host.agent_id}" if host.kind is HostKind.RELAY else self._clean_headers(scope)
        others = _rewrite_path(scope, method, rule, host)
        right = (rule if others is not None else url_map.find_rule(method, scope["path"])).find_right(method)
        address = RequestAddress(rule, host, client, right, others or frozenset())
        scope["state"] = {**state, "address": address}
        return method

    def _find_host(self, scope: Scope, relay_agent: str | None) -> HostAddress:
        if relay_agent is not None:
            return HostAddress(HostKind.RELAY, "", relay_agent)
        hosts = _values(scope, b"host")
        _, port = scope.get("server") or ("", None)
        host = self._addresses.parse(hosts[0], port) if len(hosts) == 1 else None
        if host is not None and host.kind is HostKind.LOCAL and not _is_local(scope):
            return replace(host, kind=HostKind.MANAGEMENT)
        return host or _UNKNOWN

    def _enter_gateway(self, scope: Scope, address: HostAddress) -> HostAddress:
        """Return the address of a storage gateway whose path the request has, and leave that path out."""
        found = self._addresses.parse_gateway_path(scope["path"])
        if found is None or not scope["raw_path"].startswith(f"{found[0]}/".encode()):
            return address
        scope["root_path"] = found[0]
        scope["path"] = scope["path"].removeprefix(found[0])
        scope["raw_path"] = scope["raw_path"].removeprefix(found[0].encode())
        return found[1]

    def _clean_headers(self, scope: Scope) -> str | None:
        """Set what proxies and browsers may get wrong; return the client as limits count it."""
        scope["headers"] = [_plain_cookies(header) if header[0] == b"cookie" else header for header in scope["headers"]]
        scope["scheme"] = _SCHEMES[scope["type"], self._addresses.scheme]
        host = scope["client"][0] if scope.get("client") else ""
        client = client_address(host, ",".join(_values(scope, b"x-forwarded-for")), self._trusted)
        if client != host:
            scope["client"] = (client, 0)
        return limited_client(client, host, _header_names(scope), self._trusted, limits_loopback=self._limits_loopback)


_SCHEMES = {
    ("http", "http"): "http",
    ("http", "https"): "https",
    ("websocket", "http"): "ws",
    ("websocket", "https"): "wss",
}


def _find_rule(scope: Scope) -> tuple[str, UrlRule]:
    """Return the method that counts and the row; where the row has them, keep encoded slashes in the path."""
    method = scope.get("method", WEBSOCKET)
    rule = url_map.find_rule(method, scope["path"])
    if rule.allows_method_override and (replacements := _values(scope, b"x-http-method-override")):
        method = ", ".join(replacements)
        rule = url_map.find_rule(method, scope["path"])
    if b"%2f" in scope["raw_path"].lower():
        kept = _keep_slashes(scope["raw_path"])
        if (found := url_map.find_rule(method, kept)).slash_segment is not None:
            scope["path"], rule = kept, found
    return method, rule


def _keep_slashes(raw: bytes) -> str:
    """Decode a path, except slashes in its segments, which become `%2F`."""
    return "%2F".join(unquote(part) for part in re.split("%2f", raw.decode("latin-1"), flags=re.IGNORECASE))


def is_plain(raw: bytes, path: str, slash_segment: int | None = None) -> bool:
    """Return whether raw and decoded path are equivalent for routing.

    The path has no empty segments, dot segments, encoded separators or control characters, except slashes in one
    segment. Names with slashes have no dot segments either.
    """
    if "//" in path or "\\" in path or not path.isprintable():
        return False
    if any(segment in {".", ".."} for segment in path.replace("%2F", "/").split("/")):
        return False
    if b"%" not in raw:
        return True
    segments = raw.lower().split(b"/")
    lowered = b"/".join(one.replace(b"%2f", b"") if at == slash_segment else one for at, one in enumerate(segments))
    if any(code in lowered for code in _AMBIGUOUS) or "\N{REPLACEMENT CHARACTER}" in path:
        return False
    return raw.split(b"/")[:3] == [segment.encode() for segment in path.split("/")[:3]]


def _is_served(scope: Scope, rule: UrlRule, host: HostAddress) -> bool:
    if host.kind not in rule.hosts or (rule.needs_dashboard and host.session_cookie is None):
        return False
    # Names in folders may contain anything: storage gateways read their paths as sent.
    return rule.family is UrlFamily.CONTENT or is_plain(scope["raw_path"], scope["path"], rule.slash_segment)


def _is_passed_on(scope: Scope) -> bool:
    """Return whether a program of an agent passed on a request from the agent's address, with what the edge adds.

    It holds for honest programs: a hostile one leaves the header out.
    """
    return address_of(scope).host.kind is HostKind.RELAY and b"x-forwarded-host" in dict(scope["headers"])


def _is_local(scope: Scope) -> bool:
    return scope.get("client") is not None and is_local_program(scope["client"][0], _header_names(scope))


def _header_names(scope: Scope) -> frozenset[str]:
    return frozenset(name.decode("latin-1") for name, _ in scope["headers"])


def _rewrite_path(scope: Scope, method: str, rule: UrlRule, host: HostAddress) -> frozenset[str] | None:
    """Replace an old or a short path: `/v0/logs` on an agent's address is `/v0/agents/{agentId}/logs`.

    Return None if it was replaced, else the methods for which it would have been.
    """
    methods = frozenset[str]()
    for rewrite in rule.rewrites:
        if host.kind not in rewrite.hosts or (path := rewrite.find_current(scope["path"], host.agent_id)) is None:
            continue
        if not rewrite.methods or method in rewrite.methods:
            scope["path"], scope["raw_path"] = path, quote(path, safe="/%").encode()  # `%2F` of a segment stays
            return None
        methods |= rewrite.methods
    return methods


def _plain_cookies(header: tuple[bytes, bytes]) -> tuple[bytes, bytes]:
    """Drop cookies with a backslash: none is valid (RFC 6265 4.1.1), and Python 3.11 parses them in quadratic time."""
    name, value = header
    return name, b";".join(pair for pair in value.split(b";") if b"\\" not in pair)


def _values(scope: Scope, name: bytes) -> list[str]:
    return [value.decode("latin-1") for key, value in scope["headers"] if key == name]
