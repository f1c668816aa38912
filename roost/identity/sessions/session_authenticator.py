"""Authentication by the cookie of a browser session.

The cookie counts at the dashboard's hosts alone, and only where the request has no other credential. Browsers add it to
requests that pages of others make, so each request must come from a page of this origin, and each change must have the
session's CSRF token.
"""

from hmac import compare_digest

from roost.identity.auth_request import AuthRequest
from roost.identity.caller import Caller
from roost.identity.caller_cache import token_digest
from roost.identity.credentials import CredentialSource, find_cookie, find_credential, find_key_pair
from roost.identity.errors import MissingCredential, Unauthorised
from roost.identity.same_origin import SAFE_METHODS, check_same_origin
from roost.identity.sessions.errors import InvalidCsrfToken
from roost.identity.sessions.model import csrf_token
from roost.identity.sessions.service import BrowserSessions
from roost.identity.throttle import FailedLoginThrottle

CSRF_HEADER = "x-csrf-token"


class SessionAuthenticator:
    def __init__(self, sessions: BrowserSessions, throttle: FailedLoginThrottle) -> None:
        self._sessions = sessions
        self._throttle = throttle
        self.hold_open = sessions.hold_open

    async def authenticate(self, request: AuthRequest) -> Caller:
        """Return the caller of a session. Raises MissingCredential, and as `find_caller`."""
        if (caller := await self.find_caller(request)) is None:
            raise MissingCredential
        return caller

    async def find_caller(self, request: AuthRequest) -> Caller | None:
        """Return the caller of the session that the request's cookie names; None if no such cookie counts here.

        Raises ForeignOrigin, InvalidCsrfToken, Unauthorised, TooManyAttempts.
        """
        if (token := find_session_token(request)) is None:
            return None
        check_same_origin(request.method, request.headers, request.host.origin, upgrade=request.upgrade, is_shared=True)
        if request.method not in SAFE_METHODS:
            expected = csrf_token(token_digest(token))
            if not compare_digest(request.headers.get(CSRF_HEADER, "").encode(), expected.encode()):
                raise InvalidCsrfToken
        try:
            return await self._sessions.verify(token)
        except Unauthorised:
            self._throttle.record_failure(request.limited_client)
            raise


def session_cookie_pair(request: AuthRequest) -> str:
    """Return what is left of the request's cookies without all others; empty if no session counts."""
    token = find_session_token(request)
    return "" if token is None else f"{request.host.session_cookie}={token}"


def find_session_token(request: AuthRequest) -> str | None:
    """Return the token of the cookie that counts at this address, unless the request has another credential."""
    if request.host.session_cookie is None or find_key_pair(request.headers) is not None:
        return None
    other = find_credential(request.headers, request.query)
    if other is not None and other.source is not CredentialSource.COOKIE:
        return None
    return find_cookie(request.headers, request.host.session_cookie)
