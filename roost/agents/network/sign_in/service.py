"""Create one-time sign-in links, and exchange each once for the gateway token."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import Connection

from roost.agents.network.sign_in import store
from roost.core import clock, ids
from roost.core.db import Database
from roost.core.problem import InvalidInput, Problem, ProblemKind
from roost.core.sensitive import Sensitive
from roost.identity.caller import Caller, token_digest
from roost.identity.errors import Unauthorised
from roost.identity.gateway_tokens import GatewayTokens, note_read
from roost.identity.throttle import FailedLoginThrottle

LIFETIME = timedelta(seconds=60)
LINK_LIMIT = 10
"""Unused links of an agent; a further one invalidates the oldest."""
CODE_PREFIX = "rst_once"


@dataclass(frozen=True)
class SignInLink:
    """A link to an agent's address; only the digest of its code is stored."""

    origin: str
    code: Sensitive[str]
    expires_at: datetime


def is_navigation(headers: Mapping[str, str], *, secure: bool) -> bool:
    """Return whether a person follows a link; previews of chat programs and prefetches do not count.

    `headers` has lower-case names. Browsers send Fetch Metadata (W3C) over HTTPS and to loopback, so over HTTPS a
    request without it is a program's.
    """
    mode = headers.get("sec-fetch-mode", "" if secure else "navigate")
    purpose = headers.get("sec-purpose", "") + headers.get("purpose", "")
    return mode == "navigate" and "prefetch" not in purpose and "text/html" in headers.get("accept", "")


class InvalidSignInLink(Problem):
    """The code is unknown, used, expired, of another agent, or older than the gateway token."""

    kind = ProblemKind.UNAUTHORISED
    message = "This sign-in link was used or has expired; run `roost open` again"


class NotABrowser(InvalidInput):
    """The request does not use the link up."""

    message = "Open this sign-in link in a browser"


@dataclass(frozen=True)
class SignInService:
    _db: Database
    _tokens: GatewayTokens
    _origin: Callable[[str], str]
    _throttle: FailedLoginThrottle

    async def create_link(self, caller: Caller, agent_id: str) -> SignInLink:
        """Create a link for the current gateway token; its rotation invalidates the link.

        Raises UnknownAgent, and Unauthorised for the holder of a token that was rotated a moment ago.
        """
        link = SignInLink(self._origin(agent_id), Sensitive(ids.new_token(CODE_PREFIX)), clock.utc_now() + LIFETIME)

        def write(connection: Connection) -> None:
            current = token_digest(self._tokens.reveal(connection, agent_id).reveal())
            if caller.token_digest not in (None, current):  # caches of other servers know a rotation a moment later
                raise Unauthorised
            store.remove_old_links(connection, agent_id, LINK_LIMIT - 1, clock.utc_now())
            note_read(connection, caller, agent_id)
            store.add_link(connection, token_digest(link.code.reveal()), agent_id, current, link.expires_at)

        await self._db.write(write)
        return link

    async def redeem_code(self, agent_id: str, code: str, client: str | None) -> Sensitive[str]:
        """Use a link up and return the agent's gateway token; `client` is as limits count it.

        Raises InvalidSignInLink, TooManyAttempts.
        """
        digest = token_digest(code)

        def take(connection: Connection) -> Sensitive[str] | None:
            made_for = store.take_link(connection, digest, agent_id, clock.utc_now())
            token = None if made_for is None else self._tokens.reveal(connection, agent_id)
            return token if token is not None and token_digest(token.reveal()) == made_for else None

        # Guesses must not occupy the one writer of SQLite.
        is_known = await self._db.read(lambda connection: store.has_link(connection, digest))
        token = await self._db.write(take) if is_known else None
        if token is None:
            self._throttle.record_failure(client)
            raise InvalidSignInLink
        return token
