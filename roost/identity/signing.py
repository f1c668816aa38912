"""Signing keys of JWTs: sealed rows, shared by all servers of a deployment and by the command line.

A token names its key by `kid`, which is looked up in our own table only.
"""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

import jwt
from sqlalchemy import Connection

from roost.core import clock, ids
from roost.core.seal import Sealer
from roost.identity import store
from roost.identity.errors import Unauthorised
from roost.identity.model import ISSUER

ALGORITHM = "HS256"
_CLOCK_SKEW = timedelta(seconds=60)
"""A token may be this much younger than now: the servers of a deployment have clocks of their own."""


class SigningKeys:
    def __init__(self, sealer: Sealer) -> None:
        self._sealer = sealer
        self._known: dict[str, bytes] = {}

    def get_newest(self, connection: Connection) -> tuple[str, bytes]:
        """Return the newest key and its id; create the first one if necessary. Raises UnsealFailed."""
        self._load(connection)
        if not self._known:
            kid, secret = ids.new_id(), ids.random_bytes(32)
            store.add_signing_key(connection, kid, self._sealer.seal(secret, _associated_data(kid)), clock.utc_now())
            self._known[kid] = secret
        kid = list(self._known)[-1]  # they are read in the order of their creation
        return kid, self._known[kid]

    def secret(self, connection: Connection, kid: object) -> bytes | None:
        """Return the key with this id, or None."""
        if not isinstance(kid, str):
            return None
        if kid not in self._known:
            self._load(connection)
        return self._known.get(kid)

    def decode(self, connection: Connection, token: str, audience: str, required: Sequence[str]) -> Mapping[str, Any]:
        """Return the claims of a valid token, as `decode_claims` does. Raises Unauthorised."""
        if (secret := self.secret(connection, read_key_id(token))) is None:
            raise Unauthorised
        return decode_claims(token, secret, audience, required)

    def secrets(self, connection: Connection) -> Sequence[bytes]:
        """List all keys, for verifying tokens without a `kid`."""
        self._load(connection)
        return list(self._known.values())

    def _load(self, connection: Connection) -> None:
        rows = store.all_signing_keys(connection)
        self._known = {kid: self._sealer.open(sealed, _associated_data(kid)).reveal() for kid, sealed in rows}


def read_key_id(token: str) -> object:
    """Return the `kid` of a token that is not verified yet. Raises Unauthorised."""
    try:
        return jwt.get_unverified_header(token).get("kid")
    except (jwt.PyJWTError, ValueError, TypeError):
        raise Unauthorised from None


def decode_claims(token: str, secret: bytes, audience: str, required: Sequence[str]) -> Mapping[str, Any]:
    """Return the claims of a valid token, issued up to 60 s in the future but never expired. Raises Unauthorised."""
    try:
        claims: Mapping[str, Any] = jwt.decode(
            token,
            secret,
            [ALGORITHM],
            audience=audience,
            issuer=ISSUER,
            leeway=_CLOCK_SKEW,
            options={"require": list(required)},
        )
    except (jwt.PyJWTError, ValueError, TypeError):
        raise Unauthorised from None
    if int(claims["exp"]) <= clock.utc_now().timestamp():  # the leeway is for the issue alone
        raise Unauthorised
    return claims


def _associated_data(kid: str) -> str:
    return store.SIGNING_KEY_ASSOCIATED_DATA.format(id=kid)
