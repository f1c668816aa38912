"""What authentication needs to know of a request."""

from collections.abc import Mapping
from dataclasses import dataclass

from starlette.requests import HTTPConnection

from roost.core.right import Right
from roost.web.url_rule import HostKind, rule_of


@dataclass(slots=True)  # to freeze it would double the time to make one
class AuthRequest:
    """A request to authenticate. `agent_id` and `origin` belong to the agent's address or relay.

    cookie_prefix: what the names of its cookies begin with in browsers, where other origins share them.
    limited_client: the client as limits count it; None if they do not apply to it.
    counts_use: whether the request is one of the limited uses of its key.
    session_cookie: the name of the cookie of browser sessions; None where they do not count.
    right: what the operation needs; None if there is no such operation. `scope` is the first part of the scopes that
        give it.
    """

    host_kind: HostKind
    method: str
    headers: Mapping[str, str]
    query: str
    peer: str
    agent_id: str | None = None
    origin: str = ""
    upgrade: bool = False
    cookie_prefix: str = ""
    limited_client: str | None = None
    counts_use: bool = True
    session_cookie: str | None = None
    right: Right | None = None
    scope: str = "org:agents"


def auth_request_of(connection: HTTPConnection) -> AuthRequest:
    """Create the AuthRequest of a connection that the host router has classified."""
    state = connection.scope["state"]
    return AuthRequest(
        host_kind=state["host_kind"],
        method=connection.scope.get("method", "GET"),
        headers=dict(reversed(connection.headers.items())),
        query=connection.scope["query_string"].decode("latin-1"),
        peer=connection.client.host if connection.client else "",
        agent_id=state.get("agent_host"),
        origin=state.get("origin", ""),
        upgrade=connection.scope["type"] == "websocket",
        cookie_prefix=state.get("cookie_prefix", ""),
        limited_client=state.get("limited_client"),
        session_cookie=state.get("session_cookie"),
        right=state.get("right"),
        scope=rule_of(connection.scope).scope,
    )
