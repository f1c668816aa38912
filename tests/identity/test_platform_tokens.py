"""Platform tokens: their bindings, and refused forgeries (A2, A3, A10)."""

import asyncio
from datetime import timedelta
from typing import Any

import jwt
import pytest

from roost.core import clock, ids
from roost.core.db import Database
from roost.core.seal import Sealer, UnsealFailed
from roost.core.sensitive import Sensitive
from roost.identity import tenants
from roost.identity.api_keys import ApiKeys
from roost.identity.caller import CallerKind
from roost.identity.errors import Unauthorised, UnknownAgent
from roost.identity.gateway_tokens import GatewayTokens
from roost.identity.platform_tokens import PlatformTokens, is_platform


class TokenEnv:
    def __init__(self, database: Database) -> None:
        self.db = database
        self.sealer = Sealer(Sensitive(bytes(32)))
        self.keys, self.gateways = ApiKeys(database, self.sealer), GatewayTokens(database, self.sealer)
        self.platform = PlatformTokens(database, self.sealer, self.gateways)
        self.tenant = database.run(lambda c: tenants.ensure_tenant(c, "acme"))
        for agent in ("one", "two"):
            database.run(lambda c, agent=agent: self.gateways.mint(c, agent, self.tenant.id))

    async def token(self, agent: str = "one") -> str:
        return (await self.platform.issue(agent)).token.reveal()

    def signed(self, token: str, header: dict[str, Any] | None = None, **changes: Any) -> str:
        """Return the token with other claims and a valid signature; None omits a claim."""
        head = jwt.get_unverified_header(token)
        secret = self.db.run(lambda c: self.keys._signing.secret(c, head["kid"]))
        claims = jwt.decode(token, options={"verify_signature": False}) | changes
        claims = {name: value for name, value in claims.items() if value is not None}
        return jwt.encode(claims, secret or "", "HS256", headers=head | (header or {}))


@pytest.fixture
def env(database: Database) -> TokenEnv:
    return TokenEnv(database)


async def test_a_token_names_its_agent_for_an_hour(env: TokenEnv) -> None:
    issued = await env.platform.issue("one")
    left = issued.expires_at - clock.utc_now()
    assert timedelta(minutes=59) < left <= timedelta(hours=1)
    for _ in range(2):
        caller = await env.platform.verify(issued.token.reveal())
        assert (caller.kind, caller.tenant_id, caller.agent_id) == (CallerKind.PLATFORM, env.tenant.id, "one")
    assert "eyJ" not in repr(issued)


async def test_one_of_the_container_counts_there_alone(env: TokenEnv) -> None:
    inside = (await env.platform.issue("one", is_inside=True)).token.reveal()
    for _ in range(2):  # the second time it is in the cache
        with pytest.raises(Unauthorised):
            await env.platform.verify(inside)
        assert (await env.platform.verify(inside, is_inside=True)).agent_id == "one"
    assert (await env.platform.verify(await env.token(), is_inside=True)).agent_id == "one"


async def test_it_ends_with_the_gateway_token(env: TokenEnv) -> None:
    mine, other = await env.token("one"), await env.token("two")
    await env.platform.verify(mine)
    await env.gateways.rotate("one")
    with pytest.raises(Unauthorised):
        await env.platform.verify(mine)
    await env.platform.verify(other)
    await env.platform.verify(await env.token("one"))


async def test_it_ends_with_the_agent(env: TokenEnv) -> None:
    token = await env.token()
    env.db.run(lambda c: env.gateways.revoke(c, "one"))
    env.gateways.notify_changed("one")
    with pytest.raises(Unauthorised):
        await env.platform.verify(token)
    with pytest.raises(UnknownAgent):
        await env.platform.issue("one")


@pytest.mark.parametrize(
    "changes",
    [
        {"exp": 1},
        {"exp": None},
        {"aud": "roost"},
        {"aud": None},
        {"iss": "else"},
        {"sub": "two"},
        {"sub": "nobody"},
        {"tenant": "other"},
        {"tenant": None},
        {"gateway": "0" * 32},
        {"gateway": None},
        {"gateway": 7},
        {"jti": None},
        {"header": {"typ": "JWT"}},
        {"header": {"kid": "../x"}},
    ],
)
async def test_a_token_with_anything_else_in_it_is_none(env: TokenEnv, changes: dict[str, Any]) -> None:
    token = await env.token()
    assert (await env.platform.verify(env.signed(token, iat=1))).agent_id == "one"
    with pytest.raises(Unauthorised):
        await env.platform.verify(env.signed(token, **changes))


async def test_a_token_without_our_signature_is_none(env: TokenEnv) -> None:
    token = await env.token()
    claims = jwt.decode(token, options={"verify_signature": False})
    head = {"kid": jwt.get_unverified_header(token)["kid"], "typ": "platform+jwt"}
    for forged in (
        jwt.encode(claims, "", "none", headers=head),
        jwt.encode(claims, "k" * 32, "HS256", headers=head),
        token[:-2] + ("AA" if not token.endswith("AA") else "BB"),
        token + "x" * 5000,
        "",
        "a.b.c",
        "eyJhbGciOiJIUzI1NiIsInR5cCI6InBsYXRmb3JtK2p3dCJ9..",
    ):
        with pytest.raises(Unauthorised):
            await env.platform.verify(forged)


async def test_keys_and_platform_tokens_are_never_taken_for_each_other(env: TokenEnv) -> None:
    key = env.db.run(lambda c: env.keys.issue(c, env.tenant, "k").reveal())
    token = await env.token()
    assert (is_platform(key), is_platform(token)) == (False, True)
    with pytest.raises(Unauthorised):
        await env.platform.verify(key)
    with pytest.raises(Unauthorised):
        await env.keys.verify(token)


async def test_a_key_that_cannot_be_opened_signs_nothing(env: TokenEnv) -> None:
    await env.token()
    other = PlatformTokens(env.db, Sealer(Sensitive(ids.random_bytes(32))), env.gateways)
    with pytest.raises(UnsealFailed):
        await other.issue("one")


async def test_many_rotations_among_many_requests_leave_no_old_token(env: TokenEnv) -> None:
    tokens = [await env.token() for _ in range(5)]

    async def verified(token: str) -> bool:
        try:
            await env.platform.verify(token)
        except Unauthorised:
            return False
        return True

    await asyncio.gather(*(verified(token) for token in tokens), env.gateways.rotate("one"))
    assert not any([await verified(token) for token in tokens])
