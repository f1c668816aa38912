"""One request for an agent: who sends it, and where it goes: to its gateway, or to a port of its own programs. Pure."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from starlette.responses import Response

from roost.agents.lifecycle.hosts.model import Host
from roost.agents.network.routes.model import PathRoute
from roost.core.problem import Problem
from roost.http.edge.forwarded_head import strip_token
from roost.http.server.request_head import RequestHead
from roost.http.stack.address import HostAddresses
from roost.http.stack.url_map import is_chat_path, is_platform_target, strip_operation
from roost.identity.auth_request import AuthRequest
from roost.identity.credentials import CredentialSource, find_credential, sign_in_headers
from roost.web.url_rule import ErrorForm, HostAddress

_REPEATABLE = frozenset({b"GET", b"HEAD", b"OPTIONS"})
UpstreamKey = tuple[str, int | None, str | None]
"""What connections have in common: agent and port, or the address of another server, for all of its agents."""
FindRoute = Callable[[str, bytes], PathRoute | None]


class Upstream(NamedTuple):
    """Destination of a request.

    port: of the agent's own program; None for its gateway. prefix: the part of the path that the program does not get.
    is_protected: whether a request needs the gateway token. source: the agent with the route, or the domain, whose
    change ends the request; None if neither led here. server: the other server that has the agent, or an upload
    without one, and answers the request as if it had arrived there.
    """

    agent_id: str
    port: int | None = None
    prefix: bytes = b""
    is_protected: bool = True
    source: str | None = None
    server: Host | None = None

    @property
    def key(self) -> UpstreamKey:
        if self.server is not None:
            return self.server.address or "", None, self.server.address
        return self.agent_id, self.port, None


def find_upstream(find_route: FindRoute, host: HostAddress, path: bytes) -> Upstream:
    """Return where a path at the address of an agent, or at one of its domains, leads. Raises a Problem."""
    agent_id = host.agent_id or ""
    if host.domain is not None:
        return Upstream(agent_id, host.port, b"", host.is_protected, host.domain)
    if (route := find_route(agent_id, path)) is None:
        return Upstream(agent_id)
    return Upstream(agent_id, route.port, route.prefix.encode(), route.is_protected, agent_id)


@dataclass(slots=True)
class ProxyRequest:
    """local_port: the port at which it arrived. hops: the servers that have passed it on."""

    head: RequestHead
    upstream: Upstream
    auth: AuthRequest
    request_id: str
    local_port: int | None
    hops: int = 0

    @property
    def path(self) -> str:
        return self.head.target.partition(b"?")[0].decode()

    @property
    def logged_path(self) -> str:
        """The path for the access log, without an operation whose template another server logs."""
        is_platform = not self.upstream.agent_id or is_platform_target(self.head.target)
        return strip_operation(self.head.target) if is_platform and self.upstream.server is not None else self.path

    @property
    def is_head(self) -> bool:
        return self.head.method == b"HEAD"

    @property
    def error_form(self) -> ErrorForm:
        """The form of errors that clients of this path can read: those of a gateway's chat API are OpenAI's."""
        is_chat = self.upstream.port is None and is_chat_path(self.path)
        return ErrorForm.OPENAI if is_chat else ErrorForm.AGENTS

    @property
    def is_from_page(self) -> bool:
        """Whether a browser shows the answer to a person."""
        return self.auth.method in {"GET", "HEAD"} and "text/html" in self.auth.headers.get("accept", "").lower()

    @property
    def is_repeatable(self) -> bool:
        """Whether it may be sent again when an idle connection turns out to be closed (RFC 9110, 9.2.2)."""
        return self.head.method in _REPEATABLE and not self.head.headers.has_body

    @property
    def has_token_in_url(self) -> bool:
        target = self.head.target
        return b"?" in target and strip_token(target, only_gateway_tokens=not self.upstream.is_protected) != target

    def is_current(self, addresses: HostAddresses, find_route: FindRoute) -> bool:
        """Return whether its host and path still lead to the same upstream."""
        address = addresses.parse(self.head.headers.host, self.local_port)
        if address is None or address.agent_id is None:
            return False
        try:
            return find_upstream(find_route, address, self.path.encode()) == self.upstream
        except Problem:
            return False

    def sign_in_redirect(self) -> Response | None:
        """Return the redirect of a browser with a valid token in its URL to the same page with a cookie.

        None for every other request.
        """
        auth = self.auth
        if not self.upstream.is_protected:  # its token, if there is one, was not verified
            return None
        if "token=" not in auth.query or auth.method != "GET" or auth.upgrade or "authorization" in auth.headers:
            return None
        credential = find_credential(auth.headers, auth.query)
        if (
            credential is None
            or credential.source is CredentialSource.COOKIE
            or "text/html" not in auth.headers.get("accept", "").lower()
        ):
            return None
        target = strip_token(self.head.target).decode()
        headers = sign_in_headers(credential.token, auth.host.origin, target, auth.host.cookie_prefix)
        return Response(status_code=303, headers=headers)
