"""One request for an agent: who sends it, and where it goes. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import quote

from starlette.responses import Response

from roost.hosts.address import HostAddress
from roost.hosts.edge import response_head
from roost.hosts.edge.request_head import COOKIE, RequestHead, strip_token
from roost.identity.authenticator import AuthRequest, find_credential

_REPEATABLE = frozenset({b"GET", b"HEAD", b"OPTIONS"})


@dataclass(slots=True)
class ProxyRequest:
    address: HostAddress
    agent_id: str
    head: RequestHead
    fields: Mapping[str, str]
    """Of repeated headers the first."""
    client: str
    request_id: str

    @property
    def path(self) -> str:
        return self.head.target.partition(b"?")[0].decode("latin-1")

    @property
    def host(self) -> str:
        """The agent's own host name, without a port."""
        return self.head.host.partition(":")[0].rstrip(".").lower()

    @property
    def is_repeatable(self) -> bool:
        """Whether it may be sent again when an idle connection turns out to be closed (RFC 9110, 9.2.2)."""
        return self.head.method in _REPEATABLE and not self.head.has_body

    def auth_request(self) -> AuthRequest:
        """Return the request for authentication."""
        return AuthRequest(
            surface=self.address.surface,
            method=self.head.method.decode(),
            headers=self.fields,
            query=self.head.target.partition(b"?")[2].decode("latin-1"),
            peer=self.client,
            agent_id=self.agent_id,
            origin=self.address.origin,
            upgrade=self.head.websocket,
        )

    def sign_in_redirect(self, auth: AuthRequest, *, close: bool) -> bytes | None:
        """Return the redirect of a browser with a valid token in its URL to the same page with a cookie.

        So the token stays in no history, bookmark or Referer. None for every other request.
        """
        if auth.method != "GET" or auth.upgrade or "text/html" not in auth.headers.get("accept", ""):
            return None
        if "authorization" in auth.headers or "token=" not in auth.query:
            return None
        credential = find_credential(auth.headers, auth.query)
        if credential is None or credential.from_cookie:
            return None
        secure = "; Secure" if self.address.origin.startswith("https:") else ""
        headers = {
            "location": self.address.origin + strip_token(self.head.target).decode("latin-1"),
            "set-cookie": f"{COOKIE.decode()}={quote(credential.token)}; Path=/; HttpOnly; SameSite=Lax{secure}",
            "cache-control": "no-store",
            "referrer-policy": "no-referrer",
        }
        return response_head.response_bytes(Response(status_code=303, headers=headers), self.request_id, close=close)
