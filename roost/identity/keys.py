"""API keys: service JWTs (HS256, RFC 7519) that are issued, verified and revoked here."""

from collections.abc import Sequence
from datetime import timedelta

import jwt
from sqlalchemy import Connection

from roost.core import clock, ids
from roost.core.db import Database
from roost.core.problem import Invalid
from roost.core.seal import Sealer
from roost.core.sensitive import Sensitive
from roost.identity import store
from roost.identity.cache import CallerCache, digest
from roost.identity.caller import Caller, CallerKind
from roost.identity.errors import MissingUser, Unauthorised
from roost.identity.model import AUDIENCE, ISSUER, KEY_LIFETIME, SCOPES, ApiKey, Tenant
from roost.identity.signing import ALGORITHM, SigningKeys

_LONGEST = 4096


class Keys:
    def __init__(self, db: Database, sealer: Sealer) -> None:
        self._db = db
        self._signing = SigningKeys(sealer)
        self._cache = CallerCache()

    def issue(
        self,
        connection: Connection,
        tenant: Tenant,
        name: str,
        *,
        scopes: frozenset[str] = frozenset(),
        lifetime: timedelta = KEY_LIFETIME,
    ) -> Sensitive[str]:
        """Add a key and return its token, which is shown this once. Raises Invalid for an unknown scope."""
        if unknown := scopes - SCOPES:
            raise Invalid(f"Unknown scope: {min(unknown)}")
        now = clock.now()
        key = ApiKey(ids.new_id(), tenant.id, name, scopes, now, now + lifetime)
        store.add_key(connection, key)
        kid, secret = self._signing.newest(connection)
        claims = {
            "iss": ISSUER,
            "aud": AUDIENCE,
            "sub": tenant.id,
            "jti": key.id,
            "iat": now,
            "exp": key.expires_at,
            "scope": " ".join(sorted(scopes)),
        }
        return Sensitive(jwt.encode(claims, secret, ALGORITHM, headers={"kid": kid}))

    async def verify(self, token: str) -> Caller:
        """Raises Unauthorised, or MissingUser for a genuine token whose tenant is gone."""
        if len(token) > _LONGEST:
            raise Unauthorised
        key = digest(token)
        if (caller := self._cache.get(key)) is None:
            caller = await self._db.read(lambda connection: self._verify(connection, token))
            self._cache.put(key, caller)
        return caller

    @staticmethod
    def of(connection: Connection, tenant_name: str) -> Sequence[ApiKey]:
        """The keys of a tenant, revoked ones too; none of a tenant that does not exist."""
        tenant = store.tenant_named(connection, tenant_name)
        return [] if tenant is None else store.keys(connection, tenant.id)

    @staticmethod
    def end(connection: Connection, key_id: str) -> bool:
        """Revoke a key. Whether there was a live one; every server refuses its token within a second."""
        return store.revoke_key(connection, key_id, clock.now())

    def _verify(self, connection: Connection, token: str) -> Caller:
        try:
            kid = jwt.get_unverified_header(token).get("kid")
            claims = jwt.decode(
                token,
                self._secret(connection, kid),
                [ALGORITHM],
                audience=AUDIENCE,
                issuer=ISSUER,
                options={"require": ["iss", "aud", "sub", "jti", "iat", "exp"]},
            )
        except (jwt.PyJWTError, ValueError, TypeError):
            raise Unauthorised from None
        row = store.key(connection, str(claims["jti"]))
        if store.tenant(connection, str(claims["sub"])) is None:
            raise MissingUser
        if row is None or row.revoked_at is not None or row.tenant_id != claims["sub"]:
            raise Unauthorised
        return Caller(CallerKind.SERVICE, row.tenant_id, key_id=row.id, scopes=row.scopes)

    def _secret(self, connection: Connection, kid: object) -> bytes:
        if (secret := self._signing.secret(connection, kid)) is None:
            raise Unauthorised
        return secret
