"""What authentication needs to know of a request."""

from collections.abc import Mapping
from dataclasses import dataclass

from starlette.requests import HTTPConnection

from roost.core.right import Right
from roost.web.url_rule import HostAddress, address_of


@dataclass(slots=True)  # to freeze it would double the time to make one
class AuthRequest:
    """A request to authenticate.

    limited_client: the client as limits count it; None if they do not apply to it.
    counts_use: whether the request is one of the limited uses of its key.
    right: what the operation needs; None if there is no such operation. `scope` is the first part of the scopes that
        give it.
    """

    host: HostAddress
    method: str
    headers: Mapping[str, str]
    query: str
    peer: str
    upgrade: bool = False
    limited_client: str | None = None
    counts_use: bool = True
    right: Right | None = None
    scope: str = "org:agents"


def auth_request_of(connection: HTTPConnection) -> AuthRequest:
    """Create the AuthRequest of a connection that the host router has classified."""
    address = address_of(connection.scope)
    return AuthRequest(
        host=address.host,
        method=connection.scope.get("method", "GET"),
        headers=dict(reversed(connection.headers.items())),
        query=connection.scope["query_string"].decode("latin-1"),
        peer=connection.client.host if connection.client else "",
        upgrade=connection.scope["type"] == "websocket",
        limited_client=address.limited_client,
        right=address.right,
        scope=address.rule.scope,
    )
