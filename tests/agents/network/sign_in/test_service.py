"""Sign-in links: used once, soon, at their own agent's address, for the present token."""

import asyncio
from datetime import timedelta

import pytest

from roost.agents.network.sign_in import store
from roost.agents.network.sign_in.service import LIFETIME, LINK_LIMIT, InvalidSignInLink, SignInService, is_navigation
from roost.core import clock
from roost.core.db import Database
from roost.core.seal import Sealer
from roost.core.sensitive import Sensitive
from roost.identity import tenants
from roost.identity.caller import Caller, CallerKind
from roost.identity.errors import TooManyAttempts, Unauthorised, UnknownAgent
from roost.identity.gateway_tokens import GatewayTokens
from roost.identity.throttle import FailedLoginThrottle

OWNER = Caller(CallerKind.SERVICE, "t1")
PEER = "192.0.2.1"


@pytest.fixture
def tokens(database: Database) -> GatewayTokens:
    made = GatewayTokens(database, Sealer(Sensitive(bytes(32))))
    tenant = database.run(lambda c: tenants.ensure_tenant(c, "acme").id)
    for agent_id in ("a1", "a2"):
        database.run(lambda c, agent_id=agent_id: made.mint(c, agent_id, tenant))
    return made


@pytest.fixture
def service(database: Database, tokens: GatewayTokens) -> SignInService:
    return SignInService(database, tokens, "http://{}.agents.localhost".format, FailedLoginThrottle(5))


async def new_code(service: SignInService, agent_id: str = "a1") -> str:
    return (await service.create_link(OWNER, agent_id)).code.reveal()


def count(database: Database) -> int:
    return len(database.run(lambda c: c.execute(store.sign_in_links.select()).all()))


async def test_a_link_is_used_once_by_one_of_many(
    database: Database, service: SignInService, tokens: GatewayTokens
) -> None:
    link = await service.create_link(OWNER, "a1")
    assert link.origin == "http://a1.agents.localhost"
    assert timedelta(0) < link.expires_at - clock.utc_now() <= LIFETIME
    stored = database.run(lambda c: c.execute(store.sign_in_links.select()).one())
    assert link.code.reveal() not in str(stored)
    other = SignInService(database, tokens, str, FailedLoginThrottle())  # as on another server
    attempts = (one.redeem_code("a1", link.code.reveal(), PEER) for one in [service, other] * 5)
    results = await asyncio.gather(*attempts, return_exceptions=True)
    assert [one for one in results if not isinstance(one, InvalidSignInLink)] == [await tokens.read("a1")]
    assert count(database) == 0


async def test_a_link_of_another_agent_stays(service: SignInService) -> None:
    code = await new_code(service)
    for agent_id in ("a2", ""):
        with pytest.raises(InvalidSignInLink):
            await service.redeem_code(agent_id, code, PEER)
    assert await service.redeem_code("a1", code, PEER)


async def test_a_link_expires_and_is_removed(
    database: Database, service: SignInService, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, late = await new_code(service), clock.utc_now() + LIFETIME
    monkeypatch.setattr(clock, "utc_now", lambda: late)
    with pytest.raises(InvalidSignInLink):
        await service.redeem_code("a1", code, PEER)
    await new_code(service, "a2")
    assert count(database) == 1


@pytest.mark.parametrize("change", ["rotate", "delete"])
async def test_a_link_ends_with_the_token(
    database: Database, service: SignInService, tokens: GatewayTokens, change: str
) -> None:
    code = await new_code(service)
    if change == "rotate":
        await tokens.rotate("a1")
    else:
        database.run(lambda c: tokens.revoke(c, "a1"))
        assert count(database) == 0
    with pytest.raises(InvalidSignInLink):
        await service.redeem_code("a1", code, PEER)


async def test_an_old_token_makes_no_link_for_the_new_one(service: SignInService, tokens: GatewayTokens) -> None:
    caller = await tokens.verify((await tokens.read("a1")).reveal())
    assert await service.create_link(caller, "a1")
    await tokens.rotate("a1")
    with pytest.raises(Unauthorised):
        await service.create_link(caller, "a1")
    with pytest.raises(UnknownAgent):
        await service.create_link(OWNER, "nobody")


async def test_unused_links_of_an_agent_are_limited(database: Database, service: SignInService) -> None:
    others = await new_code(service, "a2")
    codes = [await new_code(service) for _ in range(LINK_LIMIT + 2)]
    assert count(database) == LINK_LIMIT + 1
    for code in codes[:2]:
        with pytest.raises(InvalidSignInLink):
            await service.redeem_code("a1", code, PEER)
    assert await service.redeem_code("a1", codes[2], PEER)
    assert await service.redeem_code("a2", others, PEER)


async def test_guesses_are_throttled(service: SignInService) -> None:
    for guess in ("", "x" * 10_000, "\udcff"):
        with pytest.raises(InvalidSignInLink):
            await service.redeem_code("a1", guess, PEER)
    guesses = (service.redeem_code("a1", "rst_once_0", PEER) for _ in range(20))
    results = [type(one) for one in await asyncio.gather(*guesses, return_exceptions=True)]
    assert set(results) == {InvalidSignInLink, TooManyAttempts}
    assert await service.redeem_code("a1", await new_code(service), PEER)


PAGE = {"accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
CLICK = PAGE | {"sec-fetch-mode": "navigate"}


@pytest.mark.parametrize(
    ("headers", "secure", "counts"),
    [
        (CLICK, True, True),
        (CLICK, False, True),
        (PAGE, False, True),
        (PAGE, True, False),
        ({}, False, False),
        ({"accept": "*/*", "sec-fetch-mode": "navigate"}, True, False),
        (PAGE | {"sec-fetch-mode": "cors"}, False, False),
        (PAGE | {"sec-fetch-mode": "no-cors"}, True, False),
        (CLICK | {"sec-purpose": "prefetch;prerender"}, True, False),
        (CLICK | {"purpose": "prefetch"}, False, False),
    ],
)
def test_only_a_navigation_counts(headers: dict[str, str], secure: bool, counts: bool) -> None:
    assert is_navigation(headers, secure=secure) is counts
