"""The address of a request: what its Host header names, and the row of the URL map that serves its path.

A row (`http/stack/url_map.py`) has all settings of a path before its handler runs. `HostRouter` finds the address once
and puts it into the scope; no other module compares a host or a prefix. The edge finds the host of a request for an
agent by the same table of addresses.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum, auto
from functools import cached_property

from starlette.routing import compile_path
from starlette.types import Scope

from roost.core.right import Right
from roost.web.json_tokens import VALUES_LIMIT

WEBSOCKET = "WEBSOCKET"
"""What stands for the method of a WebSocket, whose request is a GET."""


class HostKind(StrEnum):
    MANAGEMENT = auto()
    AGENT = auto()
    LOCAL = auto()
    RELAY = auto()
    STORAGE = auto()
    STORAGE_GATEWAY = auto()
    DOMAIN = auto()
    """A name that a tenant registered for its agent; the platform serves nothing there."""


class UrlFamily(StrEnum):
    """Parts of the server that answer requests."""

    AGENTS = auto()
    GIT = auto()
    MODELS = auto()
    STORAGE = auto()
    CONTENT = auto()
    CONTENT_INDEX = auto()
    DASHBOARD = auto()
    DOCS = auto()
    SYSTEM = auto()


class ErrorForm(StrEnum):
    """Formats of error bodies, one for each API."""

    AGENTS = auto()
    """`{"error": string}` (contract, Errors)."""
    STORAGE = auto()
    """`{"error": {"code", "message"}}`."""
    LEGACY = auto()
    """`{"error": {"reason", "details"}}`, of the storage API before `/v3`."""
    OPENAI = auto()
    """OpenAI's own form."""
    TEXT = auto()
    """The message as plain text, of storage gateways to their visitors."""


@dataclass(frozen=True)
class BodyLimit:
    """Limits of a request body; sizes in bytes, times in seconds.

    size, values (of JSON): None if the handler limits them, or if the body is not JSON.
    uncounted: media types of bodies that are not JSON, whose values are not counted.
    codings: accepted content codings; the handler decodes a body and limits what it decodes to.
    A body must be complete within `grace` seconds plus one for each `rate` bytes, without a pause of `idle` seconds.
    """

    size: int | None = 1024**2
    values: int | None = VALUES_LIMIT
    message: str = "Request body too large"
    uncounted: frozenset[bytes] = frozenset()
    codings: frozenset[bytes] = frozenset({b"identity"})
    grace: float = 30.0
    rate: int = 8 * 1024
    idle: float = 60.0


@dataclass(frozen=True)
class PathRewrite:
    """A path that stands for another one, at some kinds of addresses and for some methods; empty for all methods.

    path: a template in the syntax of routes, `/v3/files/{id:uuid}`. current: the other one, with its values, and with
    `{agent}`, the agent of the address, and `{network}`.
    """

    path: str
    current: str
    methods: frozenset[str] = frozenset()
    hosts: frozenset[HostKind] = frozenset(HostKind)
    network: str | None = None

    def find_current(self, path: str, agent_id: str | None) -> str | None:
        """Return the current path, None for a path that is not the old one."""
        if (match := self._compiled.match(path)) is None:
            return None
        return self.current.format(agent=agent_id, network=self.network, **match.groupdict())

    @cached_property
    def _compiled(self) -> re.Pattern[str]:
        return compile_path(self.path)[0]


@dataclass(frozen=True)
class UrlRule:
    """Row of the URL map. The defaults are those of a path that is not on the map.

    pattern: a regular expression for the whole path, as it was sent. methods: empty for all.
    hosts: the kinds of addresses that serve it; it is 404 elsewhere.
    rewrites: the paths of the row that stand for others, which the rest of the server sees in their place.
    """

    pattern: str = ".*"
    family: UrlFamily = UrlFamily.SYSTEM
    hosts: frozenset[HostKind] = frozenset(HostKind) - {
        HostKind.AGENT,
        HostKind.RELAY,
        HostKind.STORAGE_GATEWAY,
        HostKind.DOMAIN,
    }
    errors: ErrorForm = ErrorForm.AGENTS
    body: BodyLimit = BodyLimit()
    methods: frozenset[str] = frozenset()
    rewrites: Sequence[PathRewrite] = ()
    authenticates_early: bool = False
    """Whether the caller is authenticated before a body is read."""
    allows_cors: bool = False
    """Whether pages of any origin may send such requests."""
    needs_dashboard: bool = False
    """Whether only the hosts of the dashboard serve it."""
    scope: str = "org:agents"
    """The first part of the scopes that give its rights, unless the handler's signature names the scope."""
    rights: Mapping[str, Right] = field(default_factory=dict[str, Right])
    """The right that each method needs; WebSockets are the method WEBSOCKET. No caller has one that is not declared."""
    response_headers: Mapping[str, str] = field(default_factory=dict[str, str])
    """Headers of every response, errors included."""
    allows_method_override: bool = False
    """Whether `X-HTTP-Method-Override` replaces the method of a request (TUS 1.0.0)."""
    slash_segment: int | None = None
    """Index of the segment of the path, as it was sent, that may contain an encoded slash; 0 is before the first slash.

    The path of the request keeps that slash as `%2F`, and the type `SlashText` of the parameter decodes it.
    """
    is_rate_limited: bool = True
    """Whether such requests count on the limits of their caller and host."""

    def matches(self, method: str, path: str) -> bool:
        """Return whether the row applies to a request."""
        return (not self.methods or method in self.methods) and self._compiled.fullmatch(path) is not None

    def find_right(self, method: str) -> Right | None:
        """Return the right that a method needs, None if it is not declared; HEAD needs that of GET."""
        return self.rights.get("GET" if method == "HEAD" else method)

    @cached_property
    def _compiled(self) -> re.Pattern[str]:
        return re.compile(self.pattern, re.DOTALL)


@dataclass(frozen=True)
class HostAddress:
    """An address with its kind, public origin and agent.

    gateway: the name of the storage gateway. cid: the raw CID, if the origin belongs to one CID. domain: a name that a
    tenant registered for its agent or gateway; it leads to `port` of the agent's programs, None for the gateway, and
    needs the gateway token if `is_protected`.
    cookie_prefix: what the names of its cookies begin with in browsers, which send them to other addresses, too.
    is_shared: whether the storage API and storage gateways have the same address.
    session_cookie: the name of the cookie of browser sessions at the dashboard's hosts, None at all others.
    """

    kind: HostKind
    origin: str
    agent_id: str | None = None
    gateway: str | None = None
    cid: str | None = None
    domain: str | None = None
    port: int | None = None
    is_protected: bool = True
    cookie_prefix: str = ""
    is_shared: bool = False
    session_cookie: str | None = None


@dataclass(frozen=True)
class RequestAddress:
    """Where a request goes.

    host: one of the kind DOMAIN if the platform does not serve the path there.
    limited_client: the client as limits count it; None if they do not apply to it.
    right: what the operation needs; None if there is no such operation.
    other_methods: those for which the path stands for another one.
    """

    rule: UrlRule
    host: HostAddress
    limited_client: str | None = None
    right: Right | None = None
    other_methods: frozenset[str] = frozenset()


def address_of(scope: Scope) -> RequestAddress:
    """Return the address that `HostRouter` put into the scope; the defaults where no router ran."""
    return scope.get("state", {}).get("address") or _UNROUTED


def rule_of(scope: Scope) -> UrlRule:
    return address_of(scope).rule


_UNROUTED = RequestAddress(UrlRule(), HostAddress(HostKind.MANAGEMENT, ""))
