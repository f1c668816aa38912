"""Service JWTs: issued tokens are accepted, all others are refused (cases A2, A3, A4)."""

import asyncio
import base64
import json
from datetime import timedelta
from typing import Any

import jwt
import pytest
from sqlalchemy import Connection

from roost.core import clock, ids
from roost.core.db import Database
from roost.core.problem import InvalidInput
from roost.core.seal import Sealer
from roost.core.sensitive import Sensitive
from roost.identity import api_keys, store, tenants
from roost.identity.api_keys import ApiKeys
from roost.identity.caller import CallerKind, Plan
from roost.identity.errors import MissingUser, Unauthorised


@pytest.fixture
def sealer() -> Sealer:
    return Sealer(Sensitive(bytes(range(32))))


@pytest.fixture
def keys(database: Database, sealer: Sealer) -> ApiKeys:
    return ApiKeys(database, sealer)


def issue(database: Database, keys: ApiKeys, tenant: str = "acme", **options: Any) -> str:
    def fn(connection: Connection) -> str:
        return keys.issue(connection, tenants.ensure_tenant(connection, tenant), "test", **options).reveal()

    return database.run(fn)


async def test_a_new_key_opens_its_tenant(database: Database, keys: ApiKeys) -> None:
    token = issue(database, keys)
    caller = await keys.verify(token)
    assert caller.kind is CallerKind.SERVICE
    assert caller.tenant_id == database.run(lambda c: tenants.ensure_tenant(c, "acme").id)
    assert caller.agent_id is None


async def test_another_process_accepts_it_too(database: Database, keys: ApiKeys, sealer: Sealer) -> None:
    token = issue(database, keys)
    assert (await ApiKeys(database, sealer).verify(token)).kind is CallerKind.SERVICE


async def test_scopes_limit_and_unknown_ones_are_refused(database: Database, keys: ApiKeys) -> None:
    caller = await keys.verify(issue(database, keys, scopes=frozenset({"org:groups:read"})))
    assert caller.allows("org:groups:read")
    assert not caller.allows("org:files:write")
    broad = await keys.verify(issue(database, keys, scopes=frozenset({"org:write"})))
    assert broad.allows("org:files:write")
    assert not broad.allows("org:files:read")
    with pytest.raises(InvalidInput, match="Unknown scope: org:everything"):
        issue(database, keys, scopes=frozenset({"org:everything"}))


async def test_a_revoked_key_is_refused_after_a_moment(
    database: Database, keys: ApiKeys, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = issue(database, keys)
    key_id = (await keys.verify(token)).key_id
    assert key_id is not None
    assert database.run(lambda c: ApiKeys.delete(c, key_id))
    assert not database.run(lambda c: ApiKeys.delete(c, key_id))
    later = clock.monotonic_seconds() + 1.0
    monkeypatch.setattr(clock, "monotonic_seconds", lambda: later)
    with pytest.raises(Unauthorised):
        await keys.verify(token)


async def test_an_expired_key_is_refused(database: Database, keys: ApiKeys) -> None:
    with pytest.raises(Unauthorised):
        await keys.verify(issue(database, keys, lifetime=timedelta(seconds=-1)))


async def test_a_genuine_token_without_its_tenant_is_missing_a_user(database: Database, keys: ApiKeys) -> None:
    token = issue(database, keys)
    forged = await resign_token(database, keys, token, sub=ids.new_id())
    with pytest.raises(MissingUser, match="Missing userId"):
        await keys.verify(forged)


@pytest.mark.parametrize("claim", ["iss", "aud", "sub", "jti", "iat", "exp"])
async def test_every_claim_is_required(database: Database, keys: ApiKeys, claim: str) -> None:
    forged = await resign_token(database, keys, issue(database, keys), **{claim: None})
    with pytest.raises(Unauthorised):
        await keys.verify(forged)


@pytest.mark.parametrize(
    "change",
    [
        {"iss": "another"},
        {"aud": "another"},
        {"jti": ids.new_id()},
        {"iat": 4102444800},
        {"nbf": 4102444800},
        {"exp": 1},
    ],
    ids=lambda change: next(iter(change)),
)
async def test_wrong_claims_are_refused(database: Database, keys: ApiKeys, change: dict) -> None:
    forged = await resign_token(database, keys, issue(database, keys), **change)
    with pytest.raises(Unauthorised):
        await keys.verify(forged)


@pytest.mark.parametrize("end", ["revoked", "expired"])
async def test_streams_of_a_key_end_with_it(
    database: Database, keys: ApiKeys, monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    monkeypatch.setattr(api_keys, "_WATCH_SECONDS", 0.01)
    caller, other = await keys.verify(issue(database, keys)), await keys.verify(issue(database, keys, "other"))

    async def hold(key_id: str) -> None:
        async with keys.hold_open(key_id):
            await asyncio.Event().wait()

    ended, lasting = (asyncio.create_task(hold(each.key_id or "")) for each in (caller, other))
    if end == "revoked":  # as another process does it
        database.run(lambda c: ApiKeys.delete(c, caller.key_id or ""))
    else:
        table = store.api_keys
        query = table.update().where(table.c.id == caller.key_id).values(expires_at=clock.utc_now())
        database.run(lambda c: c.execute(query))
    async with asyncio.timeout(10):
        with pytest.raises(Unauthorised):
            await ended
    assert not lasting.done()
    lasting.cancel()


async def test_a_key_of_one_tenant_cannot_claim_another(database: Database, keys: ApiKeys) -> None:
    issue(database, keys, "other")
    other = database.run(lambda c: tenants.ensure_tenant(c, "other").id)
    with pytest.raises(Unauthorised):
        await keys.verify(await resign_token(database, keys, issue(database, keys), sub=other))


async def test_headers_never_choose_algorithm_or_key(database: Database, keys: ApiKeys) -> None:
    token = issue(database, keys)
    payload = token.split(".")[1]
    for header in (
        {"alg": "none"},
        {"alg": "HS256"},
        {"alg": "HS256", "kid": "../../etc/passwd"},
        {"alg": "HS256", "kid": "' OR 1=1 --"},
        {"alg": "HS256", "kid": ["a"]},
        {"alg": "RS256", "kid": jwt.get_unverified_header(token)["kid"]},
        {"alg": "HS256", "jwk": {"kty": "oct", "k": "AAAA"}},
        {"alg": "HS256", "jku": "http://127.0.0.1/keys"},
    ):
        forged = f"{_encoded(header)}.{payload}."
        with pytest.raises(Unauthorised):
            await keys.verify(forged)


@pytest.mark.parametrize("garbage", ["", "x", "a.b.c", "eyJ", "🦉", "a" * 5000, "\udcff", "null", "..", "rst_gw_0"])
async def test_garbage_is_refused(keys: ApiKeys, garbage: str) -> None:
    with pytest.raises(Unauthorised):
        await keys.verify(garbage)


async def test_listing_shows_a_tenants_own_keys(database: Database, keys: ApiKeys) -> None:
    issue(database, keys)
    issue(database, keys)
    issue(database, keys, "other")
    assert len(database.run(lambda c: ApiKeys.list_tenant_keys(c, "acme"))) == 2
    assert database.run(lambda c: ApiKeys.list_tenant_keys(c, "nobody")) == []


def test_tenants_are_made_once_and_change_their_plan(database: Database) -> None:
    first = database.run(lambda c: tenants.ensure_tenant(c, "acme"))
    assert first.plan is Plan.FREE
    assert database.run(lambda c: tenants.ensure_tenant(c, "acme")) == first
    paid = database.run(lambda c: tenants.ensure_tenant(c, "acme", Plan.PAID))
    assert (paid.id, paid.plan) == (first.id, Plan.PAID)
    assert database.run(lambda c: tenants.lock_tenant(c, first.id)).plan is Plan.PAID
    with pytest.raises(MissingUser):
        database.run(lambda c: tenants.get_tenant(c, "nobody"))


async def resign_token(database: Database, keys: ApiKeys, token: str, **changes: object) -> str:
    """Return the token with other claims and a valid signature."""
    kid = jwt.get_unverified_header(token)["kid"]
    claims = jwt.decode(token, options={"verify_signature": False})
    claims = {name: value for name, value in (claims | changes).items() if value is not None}
    secret = database.run(lambda connection: keys._signing.secret(connection, kid))
    assert secret is not None
    return jwt.encode(claims, secret, "HS256", headers={"kid": kid})


def _encoded(value: dict) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()
