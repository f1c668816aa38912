"""Open, verify and end browser sessions; create the one-time links that open them (decision 0035).

The cookie of a session counts at the dashboard's hosts alone, and only where the request has no other credential.
Browsers add it to requests that pages of others make, so each request must come from a page of this origin, and each
change must have the session's CSRF token.
"""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from hmac import compare_digest

from sqlalchemy import Connection

from roost.core import clock, ids
from roost.core.db import Database
from roost.core.sensitive import Sensitive
from roost.identity import tenants
from roost.identity.api_keys import ApiKeys, caller_of_key
from roost.identity.auth_request import SAFE_METHODS, AuthRequest, check_same_origin, find_session_token
from roost.identity.caller import Caller, CallerCache, Role, token_digest
from roost.identity.credential_hold import hold_while_valid
from roost.identity.errors import InvalidCsrfToken, InvalidLoginCode, KeyOpensNoSession, MissingCredential, Unauthorised
from roost.identity.model import SCOPES
from roost.identity.sessions import store
from roost.identity.sessions.model import (
    CODE_PREFIX,
    LIFETIME,
    LINK_LIFETIME,
    LINK_LIMIT,
    SESSION_LIMIT,
    SESSION_PREFIX,
    TOUCH_INTERVAL,
    BrowserSession,
    IssuedLink,
    SessionDetail,
    SessionLink,
    StartedSession,
    bound_role,
    csrf_token,
    session_scopes,
)
from roost.identity.tenants import is_operator
from roost.identity.throttle import FailedLoginThrottle

CSRF_HEADER = "x-csrf-token"
_MAX_TOKEN_LENGTH = 256
_WATCH_SECONDS = 0.5


class BrowserSessions:
    """url: the origin of the dashboard, to which links lead."""

    def __init__(self, db: Database, keys: ApiKeys, throttle: FailedLoginThrottle, url: str) -> None:
        self._db = db
        self._keys = keys
        self._throttle = throttle
        self._url = url
        self.verified = CallerCache()

    async def create_link(self, caller: Caller, role: Role) -> IssuedLink:
        """Create a link that signs a browser in once, with this role or the highest one below it that the caller has.

        Raises KeyOpensNoSession, and Unauthorised for a caller whose key was revoked a moment ago.
        """
        _check_key(caller)
        code, expires_at = ids.new_token(CODE_PREFIX), clock.utc_now() + LINK_LIFETIME
        key_id, bounded = caller.key_id or "", bound_role(role, caller)

        def write(connection: Connection) -> None:
            if self._keys.find_live(connection, key_id) is None:
                raise Unauthorised
            tenants.lock_tenant(connection, caller.tenant_id)
            store.remove_old_links(connection, caller.tenant_id, LINK_LIMIT - 1, clock.utc_now())
            store.add_link(connection, SessionLink(token_digest(code), caller.tenant_id, key_id, bounded, expires_at))

        await self._db.write(write)
        return IssuedLink(Sensitive(f"{self._url}/login#code={code}"), expires_at)

    async def redeem_code(self, code: str, client: str | None, replaced: str = "") -> StartedSession:
        """Use a link up and open a session; `client` is as limits count it, `replaced` the browser's last session.

        Raises InvalidLoginCode, TooManyAttempts.
        """
        digest = token_digest(code)

        def take(connection: Connection) -> StartedSession | None:
            link = store.take_link(connection, digest, clock.utc_now())
            key = None if link is None else self._keys.find_live(connection, link.key_id)
            if link is None or key is None:
                return None
            return self._open(connection, caller_of_key(key), link.role, replaced)

        # Guesses must not occupy the one writer of SQLite.
        is_known = await self._db.read(lambda connection: store.has_link(connection, digest))
        started = await self._db.write(take) if is_known else None
        if started is None:
            self._throttle.record_failure(client)
            raise InvalidLoginCode
        self._forget(replaced)
        return started

    async def sign_in(self, key: str, client: str | None, replaced: str = "") -> StartedSession:
        """Open a session with a service JWT, with the highest role that its scopes allow.

        Raises Unauthorised, MissingUser, TooManyAttempts, KeyOpensNoSession.
        """
        try:
            caller = await self._keys.verify(key, counts_use=False)
        except Unauthorised:
            self._throttle.record_failure(client)
            raise
        _check_key(caller)
        role = bound_role(Role.OWNER, caller)
        started = await self._db.write(lambda connection: self._open(connection, caller, role, replaced))
        self._forget(replaced)
        return started

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
        check_same_origin(request, is_shared=True)
        if request.method not in SAFE_METHODS:
            expected = csrf_token(token_digest(token))
            if not compare_digest(request.headers.get(CSRF_HEADER, "").encode(), expected.encode()):
                raise InvalidCsrfToken
        try:
            return await self.verify(token)
        except Unauthorised:
            self._throttle.record_failure(request.limited_client)
            raise

    async def verify(self, token: str) -> Caller:
        """Return the caller of a session and note its use. Raises Unauthorised."""
        if len(token) > _MAX_TOKEN_LENGTH:
            raise Unauthorised
        digest = token_digest(token)
        if (caller := self.verified.get(digest)) is not None:
            return caller
        session, caller = await self._db.read(lambda connection: self._find(connection, digest))
        now = clock.utc_now()
        if now - session.seen_at >= TOUCH_INTERVAL:
            await self._db.write(lambda connection: store.touch_session(connection, digest, now))
        self.verified.put(digest, caller)
        return caller

    async def describe(self, caller: Caller) -> SessionDetail:
        """Return what the page of a session learns of it. Raises Unauthorised."""
        digest = caller.session_digest or b""

        def read(connection: Connection) -> SessionDetail:
            session, current = self._find(connection, digest)
            return _detail(connection, session, current)

        return await self._db.read(read)

    async def end(self, caller: Caller) -> None:
        """End the caller's session; all servers reject its token within a second. Idempotent."""
        digest = caller.session_digest or b""
        await self._db.write(lambda connection: store.remove_session(connection, digest))
        self.verified.drop(lambda cached: cached.session_digest == digest)

    async def end_all(self, caller: Caller) -> int:
        """End all sessions that the caller's key opened, and its unused links; return the number of sessions."""
        key_id, now = caller.key_id or "", clock.utc_now()
        ended = await self._db.write(lambda connection: store.remove_all_of_key(connection, key_id, now))
        self.verified.drop(lambda cached: cached.key_id == key_id)
        return ended

    @asynccontextmanager
    async def hold_open(self, digest: bytes) -> AsyncGenerator[None, None]:
        """Cancel the block and raise Unauthorised within a second after the session ends."""
        async with hold_while_valid("browser session of a stream", lambda: self._is_live(digest), _WATCH_SECONDS):
            yield

    async def _is_live(self, digest: bytes) -> bool:
        try:
            await self._db.read(lambda connection: self._find(connection, digest))
        except Unauthorised:
            return False
        return True

    def _find(self, connection: Connection, digest: bytes) -> tuple[BrowserSession, Caller]:
        session = store.find_session(connection, digest)
        if session is None or not session.is_live(clock.utc_now()):
            raise Unauthorised
        key = self._keys.find_live(connection, session.key_id)
        if key is None:
            raise Unauthorised
        return session, _caller(session, caller_of_key(key))

    def _open(self, connection: Connection, key: Caller, role: Role, replaced: str) -> StartedSession:
        """Add a session with a new token, whatever token the browser had."""
        now, token = clock.utc_now(), ids.new_token(SESSION_PREFIX)
        session = BrowserSession(
            token_digest(token), key.tenant_id, key.key_id or "", role, now, now, expires_at=now + LIFETIME
        )
        caller = _caller(session, key)
        tenants.lock_tenant(connection, key.tenant_id)
        if replaced:
            store.remove_session(connection, token_digest(replaced))
        store.remove_old_sessions(connection, key.tenant_id, SESSION_LIMIT - 1, now)
        store.add_session(connection, session)
        return StartedSession(Sensitive(token), _detail(connection, session, caller))

    def _forget(self, token: str) -> None:
        digest = token_digest(token)
        self.verified.drop(lambda cached: cached.session_digest == digest)


def _check_key(key: Caller) -> None:
    """Check that a key may open sessions: its uses are not limited. Raises KeyOpensNoSession."""
    if key.is_counted or key.key_id is None:
        raise KeyOpensNoSession


def _caller(session: BrowserSession, key: Caller) -> Caller:
    """Return the caller of a session. Raises KeyOpensNoSession if its key has no scope of the role."""
    scopes = session_scopes(session.role, key)
    if not scopes and key.scopes:
        raise KeyOpensNoSession
    return replace(key, scopes=scopes, session_digest=session.digest, role=session.role)


def _detail(connection: Connection, session: BrowserSession, caller: Caller) -> SessionDetail:
    tenant = tenants.get_tenant(connection, session.tenant_id)
    return SessionDetail(
        tenant,
        session.role,
        caller.scopes or frozenset(SCOPES),
        csrf_token(session.digest),
        session.expires_at,
        is_operator(connection, caller),
    )
