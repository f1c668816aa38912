"""One request for an agent, as its head says it: what the door gets to see, and what the gateway does. Pure."""

from dataclasses import dataclass
from urllib.parse import quote

from starlette.responses import Response

from roost.hosts.address import HostAddress
from roost.hosts.edge import response_head
from roost.hosts.edge.request_head import COOKIE, ForwardContext, Headers, RequestHead, forward, without_token
from roost.identity.authenticator import AuthRequest, find_credential

_REPEATABLE = frozenset({"GET", "HEAD", "OPTIONS"})


@dataclass(frozen=True, slots=True)
class ProxyRequest:
    address: HostAddress
    agent_id: str
    method: str
    target: bytes
    version: str
    headers: Headers
    facts: RequestHead
    peer: str
    request_id: str

    @property
    def path(self) -> str:
        return self.target.partition(b"?")[0].decode("latin-1")

    @property
    def host(self) -> str:
        """The agent's own host name, without a port."""
        return self.facts.host.partition(":")[0].rstrip(".").lower()

    @property
    def is_head(self) -> bool:
        return self.method == "HEAD"

    @property
    def is_repeatable(self) -> bool:
        """Whether it may be sent again when a kept connection turns out to have been closed (RFC 9110 9.2.2)."""
        return self.method in _REPEATABLE and not self.facts.has_body

    def entry(self) -> AuthRequest:
        """What the door looks at; of a repeated header the first counts."""
        return AuthRequest(
            surface=self.address.surface,
            method=self.method,
            headers={name.decode(): value.decode("latin-1") for name, value in reversed(self.headers)},
            query=self.target.partition(b"?")[2].decode("latin-1"),
            peer=self.peer,
            agent_id=self.agent_id,
            origin=self.address.origin,
            upgrade=self.facts.websocket,
        )

    def onward(self, scheme: str, credential: tuple[bytes, bytes]) -> bytes:
        """The head for the gateway."""
        said = ForwardContext(self.peer, scheme, self.request_id, credential)
        return forward(self.method.encode(), self.target, self.facts, self.headers, said)

    def signed_in(self, entry: AuthRequest, *, close: bool) -> bytes | None:
        """For a browser that came with a good token in the URL: off to the same page without it, and with a cookie.

        So the token stays in no history, bookmark or Referer. None for every other request.
        """
        if self.method != "GET" or self.facts.websocket or "text/html" not in entry.headers.get("accept", ""):
            return None
        if "authorization" in entry.headers or "token=" not in entry.query:
            return None
        credential = find_credential(entry.headers, entry.query)
        if credential is None or credential.from_cookie:
            return None
        secure = "; Secure" if self.address.origin.startswith("https:") else ""
        cookie = f"{COOKIE.decode()}={quote(credential.token)}; Path=/; HttpOnly; SameSite=Lax{secure}"
        headers = {
            "location": self.address.origin + without_token(self.target).decode("latin-1"),
            "set-cookie": cookie,
            "cache-control": "no-store",
            "referrer-policy": "no-referrer",
        }
        return response_head.of(Response(status_code=303, headers=headers), self.request_id, close=close)
