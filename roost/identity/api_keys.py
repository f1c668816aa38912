"""Issuing, verification and revocation of API keys, which are service JWTs (HS256, RFC 7519)."""

import difflib
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
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
from roost.identity.caller import Caller, CallerCache, CallerKind, token_digest
from roost.identity.credential_hold import hold_while_valid
from roost.identity.errors import ApiKeyNotFound, MissingUser, PermissionDenied, Unauthorised
from roost.identity.model import AUDIENCE, ISSUER, KEY_LIFETIME, SCOPES, ApiKey, IssuedApiKey, KeyFilter, Tenant
from roost.identity.signing import ALGORITHM, SigningKeys

KEY_PAGE_LIMIT = 100
_MAX_TOKEN_LENGTH = 4096
_CLAIMS = ("iss", "aud", "sub", "jti", "iat", "exp")
_WATCH_SECONDS = 0.5


class ApiKeys:
    def __init__(self, db: Database, sealer: Sealer) -> None:
        self._db = db
        self._signing = SigningKeys(sealer)
        self.verified = CallerCache()

    def issue(
        self,
        connection: Connection,
        tenant: Tenant,
        name: str,
        *,
        scopes: frozenset[str] = frozenset(),
        lifetime: timedelta = KEY_LIFETIME,
    ) -> Sensitive[str]:
        """Create a key and return its token. Raises InvalidInput for an unknown scope."""
        _check_scopes(scopes)
        now = clock.utc_now()
        return self._issue(connection, ApiKey(ids.new_id(), tenant.id, name, scopes, now, now + lifetime))

    async def mint(
        self, caller: Caller, name: str, scopes: frozenset[str], max_uses: int | None = None
    ) -> IssuedApiKey:
        """Create a key of the caller's tenant with these scopes, or unrestricted without scopes.

        Raises InvalidInput for an unknown scope, PermissionDenied for a scope that the caller lacks.
        """
        _check_scopes(scopes)
        if not caller.grants(scopes):
            raise PermissionDenied
        handle, secret, now = ids.new_key_handle(), ids.new_hex_secret(), clock.utc_now()
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

    async def list(self, tenant_id: str, key_filter: KeyFilter, offset: int) -> tuple[Sequence[ApiKey], int]:
        """List at most KEY_PAGE_LIMIT of the tenant's keys, newest first, and return their total."""
        return await self._db.read(
            lambda connection: store.filter_keys(connection, tenant_id, key_filter, offset, KEY_PAGE_LIMIT)
        )

    async def find(self, tenant_id: str | None, name: str) -> ApiKey:
        """Return the key of a tenant, or of any, with this handle or id, also a revoked one. Raises ApiKeyNotFound."""
        return await self._db.read(lambda connection: _find_key(connection, tenant_id, name))

    async def revoke(self, tenant_id: str, name: str) -> None:
        """Revoke the tenant's key with this handle or id. Raises ApiKeyNotFound, also for one that is revoked."""

        def revoke_key(connection: Connection) -> str:
            key = _find_key(connection, tenant_id, name)
            if not self.delete(connection, key.id):
                raise ApiKeyNotFound
            return key.id

        key_id = await self._db.write(revoke_key)
        self.verified.drop(lambda caller: caller.key_id == key_id)

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

    async def verify(self, token: str, *, counts_use: bool = True) -> Caller:
        """Return the caller of a valid token. Raises Unauthorised, MissingUser if its tenant does not exist."""
        if len(token) > _MAX_TOKEN_LENGTH:
            raise Unauthorised
        caller = await self._verify_cached(token_digest(token), lambda connection: self._verify(connection, token))
        return await self._use(caller) if counts_use else caller

    async def verify_pair(self, handle: str, secret: str, *, counts_use: bool = True) -> Caller:
        """Return the caller with a key's handle and secret. Raises Unauthorised, MissingUser."""
        if len(handle) + len(secret) > _MAX_TOKEN_LENGTH:
            raise Unauthorised
        digest = token_digest(key_pair(handle, secret))
        caller = await self._verify_cached(digest, lambda connection: self._verify_pair(connection, handle, secret))
        return await self._use(caller) if counts_use else caller

    @asynccontextmanager
    async def hold_open(self, key_id: str) -> AsyncGenerator[None, None]:
        """Cancel the block and raise Unauthorised within a second after the key expires or any server revokes it."""
        async with hold_while_valid("service key of a stream", lambda: self._is_live(key_id), _WATCH_SECONDS):
            yield

    async def _is_live(self, key_id: str) -> bool:
        return await self._db.read(lambda connection: self.find_live(connection, key_id)) is not None

    async def _verify_cached(self, digest: bytes, verify: Callable[[Connection], Caller]) -> Caller:
        if (caller := self.verified.get(digest)) is None:
            caller = await self._db.read(verify)
            self.verified.put(digest, caller)
        return caller

    async def _use(self, caller: Caller) -> Caller:
        """Count a use of the key, if its uses are limited. Raises Unauthorised for an exhausted key."""
        if (key_id := caller.key_id) is None or not caller.is_counted:
            return caller
        if not await self._db.write(lambda connection: store.use_key(connection, key_id)):
            raise Unauthorised
        return caller

    @staticmethod
    def find_live(connection: Connection, key_id: str) -> ApiKey | None:
        """Return the key with this id, None if it is unknown, revoked or expired."""
        key = store.find_key(connection, key_id)
        return key if key is not None and key.revoked_at is None and key.expires_at > clock.utc_now() else None

    @staticmethod
    def list_tenant_keys(connection: Connection, tenant_name: str) -> Sequence[ApiKey]:
        """List the keys of a tenant, including revoked ones; none if the tenant does not exist."""
        tenant = store.find_tenant_by_name(connection, tenant_name)
        return [] if tenant is None else store.list_keys(connection, tenant.id)

    @staticmethod
    def delete(connection: Connection, key_id: str) -> bool:
        """Revoke a key and return whether it was valid; all servers reject its token within a second."""
        return store.revoke_key(connection, key_id, clock.utc_now())

    def _verify(self, connection: Connection, token: str) -> Caller:
        claims = self._signing.decode(connection, token, AUDIENCE, _CLAIMS)
        row = store.find_key(connection, str(claims["jti"]))
        if store.find_tenant(connection, str(claims["sub"])) is None:
            raise MissingUser
        if row is None or row.revoked_at is not None or row.tenant_id != claims["sub"]:
            raise Unauthorised
        return caller_of_key(row)

    def _verify_pair(self, connection: Connection, handle: str, secret: str) -> Caller:
        row = store.find_key_by_handle(connection, handle) if handle.isprintable() else None
        proof = token_digest(secret)
        if row is None or row.proof is None or not compare_digest(row.proof, proof):
            raise Unauthorised
        if row.revoked_at is not None or row.expires_at <= clock.utc_now():
            raise Unauthorised
        if store.find_tenant(connection, row.tenant_id) is None:
            raise MissingUser
        return caller_of_key(row)


def _find_key(connection: Connection, tenant_id: str | None, name: str) -> ApiKey:
    key = store.find_key_by_handle(connection, name) or store.find_key(connection, name)
    if key is None or tenant_id not in (None, key.tenant_id):
        raise ApiKeyNotFound
    return key


def key_pair(handle: str, secret: str) -> str:
    """Return the text whose digest identifies a key's handle and secret."""
    return f"{handle} {secret}"


def caller_of_key(key: ApiKey) -> Caller:
    """Return the caller who has a key."""
    return Caller(
        CallerKind.SERVICE,
        key.tenant_id,
        key_id=key.id,
        key_name=key.name,
        scopes=key.scopes,
        is_counted=key.max_uses is not None,
    )


def _check_scopes(scopes: frozenset[str]) -> None:
    """Raise InvalidInput for an unknown scope, with the nearest ones and all."""
    if unknown := sorted(scopes - SCOPES.keys()):
        nearest = difflib.get_close_matches(unknown[0][:100], SCOPES)
        advice = f"did you mean {' or '.join(nearest)}?" if nearest else f"scopes are {', '.join(SCOPES)}"
        raise InvalidInput(f"Unknown scope: {unknown[0]}; {advice}")
