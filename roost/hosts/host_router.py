"""Marks each request with the address that it came to, before anything else looks at it.

`scope["state"]` gets `surface`, `agent_host`, `gateway_host`, `cid_host` and `origin`; the door and the handlers read
nothing else of where a request came from. On an agent's own address the short paths of `/v0` mean that agent. A path
that two readers could understand differently is no path of ours. The local address is there for this machine alone:
whoever else names it gets the management address.
"""

from collections.abc import Sequence
from dataclasses import replace

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from roost.hosts.address import HostAddress, HostAddresses
from roost.hosts.client_address import Network, client_address, is_loopback
from roost.identity.authenticator import HostKind
from roost.web import errors

_CLOSED = "/v0/issues"  # 404 by design (contract, Errors), whoever asks
_OWN = ("/v0/platform/", "/v0/status")  # what a box finds of its agent at short paths
_UNSHORTENED = ("/v0/llm/", "/v0/agents/")
_AMBIGUOUS = (b"%2e", b"%2f", b"%5c", b"%25", b"%3f", b"%23")


class HostRouter:
    """trusted: the proxies whose `X-Forwarded-For` is believed."""

    def __init__(self, app: ASGIApp, addresses: HostAddresses, trusted: Sequence[Network] = ()) -> None:
        self._app = app
        self._addresses = addresses
        self._trusted = trusted

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] in {"http", "websocket"} and not self._mark(scope):
            answer = JSONResponse(errors.body(scope["path"], 404, "Not found"), 404)
            await answer(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    def _mark(self, scope: Scope) -> bool:
        """Mark the scope, in place, so that what stands before sees it too. False when nothing is served there."""
        path = scope["path"]
        plain = is_plain(scope.get("raw_path", path.encode()), path)
        if f"{path}/".startswith(f"{_CLOSED}/"):
            return False
        relayed = scope.get("state", {}).get("relay_agent")
        if relayed is not None:
            _set(scope, HostAddress(HostKind.RELAY, "", relayed))
            return plain and (_lengthen(scope, relayed) if path.startswith(_OWN) else path.startswith("/v0/"))
        hosts = _values(scope, b"host")
        address = self._addresses.parse(hosts[0]) if len(hosts) == 1 else None
        if address is None or not (plain or _is_content(address, path)):
            return False
        scope["headers"] = [_plain_cookies(header) if header[0] == b"cookie" else header for header in scope["headers"]]
        if address.surface is HostKind.LOCAL and not _is_from_here(scope):
            address = replace(address, surface=HostKind.MANAGEMENT)
        _set(scope, address)
        self._see_through_proxies(scope)
        return address.agent_id is None or _lengthen(scope, address.agent_id)

    def _see_through_proxies(self, scope: Scope) -> None:
        scope["scheme"] = _SCHEMES[scope["type"], self._addresses.scheme]
        if self._trusted and scope.get("client"):
            host, port = scope["client"]
            seen = client_address(host, ",".join(_values(scope, b"x-forwarded-for")), self._trusted)
            scope["client"] = (seen, port if seen == host else 0)


_SCHEMES = {
    ("http", "http"): "http",
    ("http", "https"): "https",
    ("websocket", "http"): "ws",
    ("websocket", "https"): "wss",
}


def is_plain(raw: bytes, path: str) -> bool:
    """Whether a path reads the same before and after decoding, as far as routes go.

    raw: as it was sent. path: decoded. No empty segments, no dots, no encoded separators, no control characters.
    """
    if "//" in path or "\\" in path or not path.isprintable():
        return False
    if any(segment in {".", ".."} for segment in path.split("/")):
        return False
    if b"%" not in raw:
        return True
    lowered = raw.lower()
    if any(code in lowered for code in _AMBIGUOUS) or "\N{REPLACEMENT CHARACTER}" in path:
        return False
    return raw.split(b"/")[:3] == [segment.encode() for segment in path.split("/")[:3]]


def _is_content(address: HostAddress, path: str) -> bool:
    """Names in folders may have any sign in them; a storage gateway reads their paths as they were sent."""
    return address.gateway is not None and (address.cid is not None or path.startswith(("/ipfs/", "/files/")))


def _is_from_here(scope: Scope) -> bool:
    """Whether a program of this machine asks for itself. Anybody can write `Host: localhost`, also through a proxy that
    runs here; what a proxy adds gives it away.
    """
    forwarded = any(name in {b"x-forwarded-for", b"forwarded", b"via"} for name, _ in scope["headers"])
    return not forwarded and scope.get("client") is not None and is_loopback(scope["client"][0])


def _set(scope: Scope, address: HostAddress) -> None:
    marks = {
        "surface": address.surface,
        "agent_host": address.agent_id,
        "origin": address.origin,
        "gateway_host": address.gateway,
        "cid_host": address.cid,
    }
    scope["state"] = {**scope.get("state", {}), **marks}


def _lengthen(scope: Scope, agent_id: str) -> bool:
    """`/v0/logs` on an agent's address is `/v0/agents/{agentId}/logs`. False for what is not the platform's there."""
    path = scope["path"]
    if not path.startswith("/v0/"):
        return False
    if not path.startswith(_UNSHORTENED) and path != "/v0/agents":
        prefix = f"/v0/agents/{agent_id}"
        scope["path"] = prefix + path.removeprefix("/v0")
        scope["raw_path"] = prefix.encode() + scope.get("raw_path", path.encode()).removeprefix(b"/v0")
    return True


def _plain_cookies(header: tuple[bytes, bytes]) -> tuple[bytes, bytes]:
    """Without what has a backslash, which no cookie has (RFC 6265 4.1.1) and which Python 3.11 takes the square of its
    length to read.
    """
    name, value = header
    return name, b";".join(pair for pair in value.split(b";") if b"\\" not in pair)


def _values(scope: Scope, name: bytes) -> list[str]:
    return [value.decode("latin-1") for key, value in scope["headers"] if key == name]
