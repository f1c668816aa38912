"""API keys: service JWTs (HS256, RFC 7519) that are issued, verified and revoked here."""

from collections.abc import Callable, Sequence
from datetime import timedelta
from hmac import compare_digest

import jwt
from sqlalchemy import Connection

from roost.core import clock, ids
from roost.core.db import Database
from roost.core.problem import InvalidInput
from roost.core.seal import Sealer
from roost.core.sensitive import Sensitive
from roost.identity import store
from roost.identity.caller import Caller, CallerKind
from roost.identity.caller_cache import CallerCache, token_digest
from roost.identity.errors import ApiKeyNotFound, MissingUser, PermissionDenied, Unauthorised
from roost.identity.model import AUDIENCE, ISSUER, KEY_LIFETIME, SCOPES, ApiKey, IssuedApiKey, KeyFilter, Tenant
from roost.identity.signing import ALGORITHM, SigningKeys

KEYS_AT_ONCE = 100
_LONGEST = 4096


class ApiKeys:
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
            raise InvalidInput(f"Unknown scope: {min(unknown)}")
        now = clock.utc_now()
        return self._issue(connection, ApiKey(ids.new_id(), tenant.id, name, scopes, now, now + lifetime))

    async def mint(
        self, caller: Caller, name: str, scopes: frozenset[str], max_uses: int | None = None
    ) -> IssuedApiKey:
        """A new key of the caller's tenant, with these scopes or, with none, with all.

        Raises Invalid for an unknown scope, PermissionDenied for one that the caller lacks.
        """
        if unknown := scopes - SCOPES:
            raise InvalidInput(f"Unknown scope: {min(unknown)}")
        if not caller.grants(scopes):
            raise PermissionDenied
        handle, secret, now = ids.public_key(), ids.new_hex_secret(), clock.utc_now()
        key = ApiKey(
            id=ids.new_id(),
            tenant_id=caller.tenant_id,
            name=name,
            scopes=scopes,
            created_at=now,
            expires_at=now + KEY_LIFETIME,
            handle=handle,
            proof=token_digest(secret),
            max_uses=max_uses,
        )
        token = await self._db.write(lambda connection: self._issue(connection, key))
        return IssuedApiKey(token, handle, Sensitive(secret))

    async def list(self, tenant_id: str, chosen: KeyFilter, offset: int) -> tuple[Sequence[ApiKey], int]:
        """At most KEYS_AT_ONCE of the tenant's keys, the newest first, and how many there are."""
        return await self._db.read(
            lambda connection: store.filter_keys(connection, tenant_id, chosen, offset, KEYS_AT_ONCE)
        )

    async def revoke(self, tenant_id: str, name: str) -> None:
        """Revoke a key of the tenant's, by its handle or its id. Raises KeyMissing for one that is no more."""

        def end(connection: Connection) -> str:
            key = store.find_key_by_handle(connection, name) or store.find_key(connection, name)
            if key is None or key.tenant_id != tenant_id or not self.delete(connection, key.id):
                raise ApiKeyNotFound
            return key.id

        key_id = await self._db.write(end)
        self._cache.drop(lambda caller: caller.key_id == key_id)

    def _issue(self, connection: Connection, key: ApiKey) -> Sensitive[str]:
        store.add_key(connection, key)
        kid, secret = self._signing.get_newest(connection)
        claims = {
            "iss": ISSUER,
            "aud": AUDIENCE,
            "sub": key.tenant_id,
            "jti": key.id,
            "iat": key.created_at,
            "exp": key.expires_at,
            "scope": " ".join(sorted(key.scopes)),
        }
        return Sensitive(jwt.encode(claims, secret, ALGORITHM, headers={"kid": kid}))

    async def verify(self, token: str) -> Caller:
        """Raises Unauthorised, or MissingUser for a genuine token whose tenant is gone."""
        if len(token) > _LONGEST:
            raise Unauthorised
        return await self._known(token_digest(token), lambda connection: self._verify(connection, token))

    async def verify_pair(self, handle: str, secret: str) -> Caller:
        """The caller with a key's handle and secret. Raises Unauthorised, MissingUser."""
        if len(handle) + len(secret) > _LONGEST:
            raise Unauthorised
        shown = token_digest(f"{handle} {secret}")
        return await self._known(shown, lambda connection: self._verify_pair(connection, handle, secret))

    async def _known(self, shown: bytes, verify: Callable[[Connection], Caller]) -> Caller:
        """The caller who showed that, verified now or a moment ago. Raises Unauthorised for a key that is used up."""
        if (caller := self._cache.get(shown)) is None:
            caller = await self._db.read(verify)
            self._cache.put(shown, caller)
        if caller.is_counted and not await self._use(caller):
            raise Unauthorised
        return caller

    async def _use(self, caller: Caller) -> bool:
        key_id = caller.key_id
        assert key_id is not None
        return await self._db.write(lambda connection: store.use_key(connection, key_id))

    @staticmethod
    def list_of_tenant(connection: Connection, tenant_name: str) -> Sequence[ApiKey]:
        """The keys of a tenant, revoked ones too; none of a tenant that does not exist."""
        tenant = store.find_tenant_by_name(connection, tenant_name)
        return [] if tenant is None else store.list_keys(connection, tenant.id)

    @staticmethod
    def delete(connection: Connection, key_id: str) -> bool:
        """Revoke a key. Whether there was a live one; every server refuses its token within a second."""
        return store.revoke_key(connection, key_id, clock.utc_now())

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
        row = store.find_key(connection, str(claims["jti"]))
        if store.find_tenant(connection, str(claims["sub"])) is None:
            raise MissingUser
        if row is None or row.revoked_at is not None or row.tenant_id != claims["sub"]:
            raise Unauthorised
        return _caller(row)

    def _verify_pair(self, connection: Connection, handle: str, secret: str) -> Caller:
        row = store.find_key_by_handle(connection, handle) if handle.isprintable() else None
        proof = token_digest(secret)
        if row is None or row.proof is None or not compare_digest(row.proof, proof):
            raise Unauthorised
        if row.revoked_at is not None or row.expires_at <= clock.utc_now():
            raise Unauthorised
        if store.find_tenant(connection, row.tenant_id) is None:
            raise MissingUser
        return _caller(row)

    def _secret(self, connection: Connection, kid: object) -> bytes:
        if (secret := self._signing.secret(connection, kid)) is None:
            raise Unauthorised
        return secret


def _caller(key: ApiKey) -> Caller:
    is_counted = key.max_uses is not None
    return Caller(CallerKind.SERVICE, key.tenant_id, key_id=key.id, scopes=key.scopes, is_counted=is_counted)
