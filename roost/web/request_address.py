"""The address of a request: what its Host header names, and the row of the URL map that serves its path.

`HostRouter` finds it once and puts it into the scope; no other module compares a host or a prefix. The edge finds the
host of a request for an agent by the same table of addresses.
"""

from dataclasses import dataclass

from starlette.types import Scope

from roost.core.right import Right
from roost.web.url_rule import HostKind, UrlRule


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
    """Return the row of the URL map for a request."""
    return address_of(scope).rule


_UNROUTED = RequestAddress(UrlRule(), HostAddress(HostKind.MANAGEMENT, ""))
