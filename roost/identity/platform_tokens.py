"""Platform tokens, with which agents act for their owners at the management address for an hour.

A token is a JWT (HS256) with its own type and audience, so that it cannot be confused with a service key (RFC 8725, 3.9
and 3.11). It is bound to the agent, its tenant and its current gateway token: a rotation or the agent's deletion
invalidates it. One that was issued in the container counts there alone, so that a stranger to whom a program of the
agent opens the container cannot take it away. Tokens are not stored.
"""

import hmac
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import jwt
from sqlalchemy import Connection

from roost.core import clock, ids
from roost.core.db import Database
from roost.core.seal import Sealer
from roost.core.sensitive import Sensitive
from roost.identity import store
from roost.identity.caller import Caller, CallerCache, CallerKind, token_digest
from roost.identity.errors import Unauthorised, UnknownAgent
from roost.identity.gateway_tokens import GatewayTokens
from roost.identity.model import ISSUER
from roost.identity.signing import ALGORITHM, SigningKeys

LIFETIME = timedelta(hours=1)
_AUDIENCE = "roost-platform"
_TYPE = "platform+jwt"
_LONGEST = 4096
_INSIDE = "inside"
_CLAIMS = ["iss", "aud", "sub", "tenant", "gateway", "jti", "iat", "exp"]


@dataclass(frozen=True)
class IssuedPlatformToken:
    token: Sensitive[str]
    expires_at: datetime


class PlatformTokens:
    def __init__(self, db: Database, sealer: Sealer, gateways: GatewayTokens) -> None:
        self._db = db
        self._signing = SigningKeys(sealer)
        self.verified = CallerCache()
        self._changes = 0
        self._prefix: Sensitive[str] | None = None
        gateways.subscribe(self._forget)

    async def get_prefix(self) -> Sensitive[str]:
        """Return how every token begins, by which one is recognized in a text. Raises UnsealFailed."""
        if self._prefix is None:
            kid, secret = await self._db.write(self._signing.get_newest)
            header = _encode({}, kid, secret).partition(".")[0]
            self._prefix = Sensitive(f"{header}.")
        return self._prefix

    async def issue(self, agent_id: str, *, is_inside: bool = False) -> IssuedPlatformToken:
        """Issue a token for the agent, `is_inside` for its container alone. Raises UnknownAgent, UnsealFailed."""
        return await self._db.write(lambda connection: self._issue(connection, agent_id, is_inside=is_inside))

    async def verify(self, token: str, *, is_inside: bool = False) -> Caller:
        """Return the caller of a valid token, `is_inside` from the agent's container. Raises Unauthorised."""
        caller = await self._find_caller(token)
        if caller.is_inside and not is_inside:
            raise Unauthorised
        return caller

    async def _find_caller(self, token: str) -> Caller:
        if len(token) > _LONGEST:
            raise Unauthorised
        key = token_digest(token)
        if (caller := self.verified.get(key)) is not None:
            return caller
        changes = self._changes
        caller = await self._db.read(lambda connection: self._verify(connection, token))
        if changes != self._changes:  # the token may have been rotated during the read
            return await self._find_caller(token)
        self.verified.put(key, caller)
        return caller

    def _issue(self, connection: Connection, agent_id: str, *, is_inside: bool) -> IssuedPlatformToken:
        row = store.find_gateway_token(connection, agent_id)
        if row is None:
            raise UnknownAgent
        kid, secret = self._signing.get_newest(connection)
        now = clock.utc_now()
        expires = (now + LIFETIME).replace(microsecond=0)  # a JWT tells whole seconds
        claims = {
            "iss": ISSUER,
            "aud": _AUDIENCE,
            "sub": agent_id,
            "tenant": row.tenant_id,
            "gateway": _fingerprint(row.digest),
            "jti": ids.new_id(),
            "iat": now,
            "exp": expires,
            **({_INSIDE: True} if is_inside else {}),
        }
        return IssuedPlatformToken(Sensitive(_encode(claims, kid, secret)), expires)

    def _verify(self, connection: Connection, token: str) -> Caller:
        if not is_platform(token):
            raise Unauthorised
        claims = self._signing.decode(connection, token, _AUDIENCE, _CLAIMS)
        row = store.find_gateway_token(connection, str(claims["sub"]))
        if row is None or row.tenant_id != claims["tenant"]:
            raise Unauthorised
        if not hmac.compare_digest(_fingerprint(row.digest).encode(), str(claims["gateway"]).encode()):
            raise Unauthorised
        is_inside = claims.get(_INSIDE) is True
        return Caller(CallerKind.PLATFORM, row.tenant_id, agent_id=row.agent_id, is_inside=is_inside)

    def _forget(self, agent_id: str) -> None:
        self._changes += 1
        self.verified.drop(lambda caller: caller.agent_id == agent_id)


def is_platform(token: str) -> bool:
    """Return whether a token claims to be a platform token, without verifying it."""
    try:
        return len(token) <= _LONGEST and jwt.get_unverified_header(token).get("typ") == _TYPE
    except (jwt.PyJWTError, ValueError, TypeError):
        return False


def _encode(claims: dict[str, Any], kid: str, secret: bytes) -> str:
    return jwt.encode(claims, secret, ALGORITHM, headers={"kid": kid, "typ": _TYPE})


def _fingerprint(gateway_digest: bytes) -> str:
    """Identify a gateway token without revealing its stored digest."""
    return token_digest(f"platform {gateway_digest.hex()}").hex()[:32]
