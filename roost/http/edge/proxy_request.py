"""One request for an agent: who sends it, and where it goes. Pure."""

from dataclasses import dataclass

from starlette.responses import Response

from roost.http.edge import response_head
from roost.http.edge.upstream import Upstream
from roost.http.server.request_head import RequestHead, strip_token
from roost.http.stack.url_map import is_chat_path
from roost.identity.auth_request import AuthRequest
from roost.identity.credentials import CredentialSource, find_credential, sign_in_headers
from roost.web.url_rule import ErrorForm

_REPEATABLE = frozenset({b"GET", b"HEAD", b"OPTIONS"})


@dataclass(slots=True)
class ProxyRequest:
    head: RequestHead
    upstream: Upstream
    auth: AuthRequest
    request_id: str

    @property
    def agent_id(self) -> str:
        return self.upstream.agent_id

    @property
    def path(self) -> str:
        return self.head.target.partition(b"?")[0].decode()

    @property
    def host(self) -> str:
        """The agent's own host name, without a port."""
        return self.head.headers.host_name

    @property
    def is_head(self) -> bool:
        return self.head.method == b"HEAD"

    @property
    def error_form(self) -> ErrorForm:
        """The form of errors that clients of this path can read: those of a gateway's chat API are OpenAI's."""
        is_chat = self.upstream.route is None and is_chat_path(self.path)
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

    def sign_in_redirect(self, *, close: bool) -> bytes | None:
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
        headers = sign_in_headers(credential.token, auth.origin, target, auth.cookie_prefix)
        return response_head.response_bytes(Response(status_code=303, headers=headers), self.request_id, close=close)
