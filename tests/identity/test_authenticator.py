"""The credentials that each endpoint accepts (cases A1, A4-A7, A13-A15, A17)."""

from dataclasses import replace

import pytest

from roost.core.db import Database
from roost.core.problem import NotFound
from roost.core.right import Right
from roost.core.seal import Sealer
from roost.core.sensitive import Sensitive
from roost.identity import tenants
from roost.identity.api_keys import ApiKeys
from roost.identity.auth_request import AuthRequest
from roost.identity.authenticator import AGENT, ANY_SCOPE, SERVICE, Authenticator
from roost.identity.caller import Caller, CallerKind
from roost.identity.credentials import find_credential
from roost.identity.errors import (
    ForeignOrigin,
    MissingCredential,
    PermissionDenied,
    TooManyAttempts,
    Unauthorised,
    UnknownAgent,
)
from roost.identity.gateway_tokens import GatewayTokens
from roost.identity.known_credentials import KnownCredentials
from roost.identity.platform_tokens import PlatformTokens
from roost.identity.sessions.service import BrowserSessions
from roost.identity.throttle import FailedLoginThrottle
from roost.web.url_rule import HostAddress, HostKind, UrlFamily

ATTEMPTS = 20
OWN = "http://agent-1.agents.localhost:8642"


class AuthEnv:
    """Two tenants, each with an agent, and an authenticator."""

    def __init__(self, database: Database) -> None:
        sealer = Sealer(Sensitive(bytes(32)))
        self.keys, self.gateways = ApiKeys(database, sealer), GatewayTokens(database, sealer)
        platform = PlatformTokens(database, sealer, self.gateways)
        throttle = FailedLoginThrottle(ATTEMPTS)
        self.sessions = BrowserSessions(database, self.keys, throttle, "http://localhost:8642")
        self.known_credentials = KnownCredentials(self.keys, self.gateways, platform, self.sessions)
        self.authenticator = Authenticator(self.keys, self.gateways, platform, self.sessions, throttle)
        self.jwt: dict[str, str] = {}
        self.token: dict[str, str] = {}
        for tenant, agent in (("a", "agent-1"), ("b", "agent-2")):
            self.jwt[tenant] = database.run(
                lambda c, tenant=tenant: self.keys.issue(c, tenants.ensure_tenant(c, tenant), "k").reveal()
            )
            self.token[agent] = database.run(
                lambda c, tenant=tenant, agent=agent: self.gateways.mint(
                    c, agent, tenants.ensure_tenant(c, tenant).id
                ).reveal()
            )
        self.reader = database.run(
            lambda c: self.keys.issue(
                c, tenants.ensure_tenant(c, "a"), "r", scopes=frozenset({"org:agents:read"})
            ).reveal()
        )

    async def authenticate_agent(self, request: AuthRequest, agent_id: str) -> Caller:
        return await self.authenticator.authenticate(request, AGENT, agent_id)


@pytest.fixture
def env(database: Database) -> AuthEnv:
    return AuthEnv(database)


def auth_request(host_kind: HostKind, token: str | None = None, agent: str = "agent-1", **changes) -> AuthRequest:
    headers = {} if token is None else {"authorization": f"Bearer {token}"}
    host = HostAddress(host_kind, OWN, agent if host_kind in (HostKind.AGENT, HostKind.RELAY) else None)
    request = AuthRequest(host, "GET", headers, "", "192.0.2.1", limited_client="192.0.2.1", right=Right.READ)
    return replace(request, **changes)


async def test_a_jwt_enters_the_management_address(env: AuthEnv) -> None:
    caller = await env.authenticator.authenticate(auth_request(HostKind.MANAGEMENT, env.jwt["a"]), SERVICE)
    assert caller.kind is CallerKind.SERVICE
    assert (await env.authenticate_agent(auth_request(HostKind.LOCAL, env.jwt["a"]), "agent-1")).agent_id is None


async def test_a_gateway_token_enters_its_agents_address_by_three_ways(env: AuthEnv) -> None:
    token = env.token["agent-1"]
    for way in (
        auth_request(HostKind.AGENT, token),
        auth_request(HostKind.AGENT, query=f"a=b&token={token}"),
        auth_request(HostKind.AGENT, headers={"cookie": f"x=y; gw_token={token}"}),
        auth_request(HostKind.LOCAL, token),
    ):
        caller = await env.authenticate_agent(way, "agent-1")
        assert (caller.kind, caller.agent_id) == (CallerKind.GATEWAY, "agent-1")


async def test_a_verified_gateway_token_is_recalled_for_its_own_agent_until_it_is_rotated(env: AuthEnv) -> None:
    token, recall = env.token["agent-1"], env.authenticator.recall_gateway_token
    known = auth_request(HostKind.AGENT, token)
    assert not recall(known)
    await env.authenticator.authenticate_gateway_token(known)
    assert recall(known)
    assert recall(auth_request(HostKind.AGENT, query=f"token={token}"))
    assert not recall(auth_request(HostKind.AGENT, token, "agent-2"))
    assert not recall(auth_request(HostKind.AGENT, headers={"cookie": f"gw_token={token}"}))  # needs its origin checked
    assert not recall(auth_request(HostKind.AGENT, env.jwt["a"]))
    assert not recall(auth_request(HostKind.AGENT, "x" * 10_000))
    assert not recall(auth_request(HostKind.AGENT))
    await env.gateways.rotate("agent-1")
    assert not recall(known)


async def test_without_a_credential_nobody_enters(env: AuthEnv) -> None:
    for host_kind in (HostKind.MANAGEMENT, HostKind.LOCAL, HostKind.AGENT):
        for ask in (
            lambda e: env.authenticator.authenticate(e, SERVICE),
            lambda e: env.authenticate_agent(e, "agent-1"),
            env.authenticator.authenticate_model,
        ):
            with pytest.raises(MissingCredential):
                await ask(auth_request(host_kind))


async def test_a_foreign_credential_is_refused(env: AuthEnv) -> None:
    with pytest.raises(Unauthorised):  # A5
        await env.authenticate_agent(auth_request(HostKind.MANAGEMENT, env.jwt["b"]), "agent-1")
    with pytest.raises(Unauthorised):  # A6, on the path and on the host
        await env.authenticate_agent(auth_request(HostKind.AGENT, env.token["agent-2"]), "agent-1")
    with pytest.raises(Unauthorised):
        await env.authenticate_agent(auth_request(HostKind.AGENT, env.token["agent-2"]), "agent-2")
    with pytest.raises(Unauthorised):
        await env.authenticator.authenticate_gateway_token(auth_request(HostKind.AGENT, env.token["agent-2"]))
    with pytest.raises(Unauthorised):  # A7
        await env.authenticator.authenticate(auth_request(HostKind.LOCAL, env.token["agent-1"]), SERVICE)


async def test_each_address_takes_its_own_kind(env: AuthEnv) -> None:
    with pytest.raises(Unauthorised):
        await env.authenticate_agent(auth_request(HostKind.AGENT, env.jwt["a"]), "agent-1")
    with pytest.raises(Unauthorised):
        await env.authenticate_agent(auth_request(HostKind.MANAGEMENT, env.token["agent-1"]), "agent-1")
    with pytest.raises(Unauthorised):
        await env.authenticator.authenticate(auth_request(HostKind.AGENT, env.jwt["a"]), SERVICE)


async def test_an_unknown_agent_is_missing_for_a_jwt_only(env: AuthEnv) -> None:
    with pytest.raises(UnknownAgent):
        await env.authenticate_agent(auth_request(HostKind.MANAGEMENT, env.jwt["a"]), "nobody")
    with pytest.raises(Unauthorised):
        await env.authenticate_agent(auth_request(HostKind.AGENT, env.token["agent-1"]), "nobody")


async def test_a_relay_needs_no_token_and_opens_models_only(env: AuthEnv) -> None:
    caller = await env.authenticator.authenticate_model(auth_request(HostKind.RELAY))
    assert (caller.kind, caller.agent_id) == (CallerKind.RELAY, "agent-1")
    for ask in (
        env.authenticator.authenticate(auth_request(HostKind.RELAY), SERVICE),
        env.authenticate_agent(auth_request(HostKind.RELAY), "agent-1"),
    ):
        with pytest.raises(NotFound):
            await ask


async def test_models_open_to_jwt_and_gateway_token(env: AuthEnv) -> None:
    callers: list[Caller] = [
        await env.authenticator.authenticate_model(auth_request(HostKind.MANAGEMENT, env.jwt["a"])),
        await env.authenticator.authenticate_model(auth_request(HostKind.LOCAL, env.token["agent-1"])),
        await env.authenticator.authenticate_model(auth_request(HostKind.AGENT, env.token["agent-1"])),
    ]
    assert [caller.agent_id for caller in callers] == [None, "agent-1", "agent-1"]


async def test_a_scope_limits_to_reading(env: AuthEnv) -> None:
    """Whatever the method: a GET, or a WebSocket, can reveal a token or run commands."""
    reader = auth_request(HostKind.MANAGEMENT, env.reader)
    await env.authenticator.authenticate(replace(reader, method="POST"), SERVICE)
    for right in (*(set(Right) - {Right.NONE, Right.READ}), None):
        with pytest.raises(PermissionDenied):
            await env.authenticator.authenticate(replace(reader, right=right), SERVICE)
        if right is not None:
            with pytest.raises(PermissionDenied):
                await env.authenticator.identify_caller(replace(reader, right=right), UrlFamily.AGENTS)


async def test_the_first_credential_counts_and_is_never_joined_with_another(env: AuthEnv) -> None:
    good, bad = env.token["agent-1"], "rst_gw_" + "0" * 64
    both = {"authorization": f"Bearer {bad}", "cookie": f"gw_token={good}"}
    with pytest.raises(Unauthorised):
        await env.authenticate_agent(auth_request(HostKind.AGENT, headers=both, query=f"token={good}"), "agent-1")


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://agent-2.agents.localhost:8642"])
async def test_a_cookie_from_a_foreign_page_changes_nothing(env: AuthEnv, origin: str) -> None:
    headers = {"cookie": f"gw_token={env.token['agent-1']}", "origin": origin}
    with pytest.raises(ForeignOrigin):
        await env.authenticate_agent(auth_request(HostKind.AGENT, headers=headers, method="POST"), "agent-1")
    with pytest.raises(ForeignOrigin):
        await env.authenticator.authenticate_gateway_token(auth_request(HostKind.AGENT, headers=headers, upgrade=True))
    await env.authenticate_agent(auth_request(HostKind.AGENT, headers=headers), "agent-1")  # reading changes nothing


async def test_a_cookie_that_another_page_set_for_the_domain_authorises_nothing(env: AuthEnv) -> None:
    for other in ("anything", env.token["agent-2"]):
        headers = {"cookie": f"gw_token={other}; gw_token={env.token['agent-1']}"}
        with pytest.raises((Unauthorised, NotFound)):  # it hides the token, as the threat model says
            await env.authenticate_agent(auth_request(HostKind.AGENT, headers=headers), "agent-1")


async def test_a_cookie_needs_an_origin_to_upgrade(env: AuthEnv) -> None:
    cookie = {"cookie": f"gw_token={env.token['agent-1']}"}
    with pytest.raises(ForeignOrigin):
        await env.authenticator.authenticate_gateway_token(auth_request(HostKind.AGENT, headers=cookie, upgrade=True))
    await env.authenticator.authenticate_gateway_token(
        auth_request(HostKind.AGENT, headers=cookie | {"origin": OWN}, upgrade=True)
    )
    await env.authenticate_agent(
        auth_request(HostKind.AGENT, headers=cookie | {"origin": OWN}, method="POST"), "agent-1"
    )


async def test_a_cookie_is_no_service_key(env: AuthEnv) -> None:
    with pytest.raises(Unauthorised):
        await env.authenticator.authenticate(
            auth_request(HostKind.LOCAL, headers={"cookie": f"gw_token={env.jwt['a']}"}), SERVICE
        )


@pytest.mark.parametrize("host", [HostKind.MANAGEMENT, HostKind.LOCAL])
async def test_a_service_key_in_a_url_is_refused(env: AuthEnv, host: HostKind) -> None:
    with pytest.raises(Unauthorised):
        await env.authenticator.authenticate(auth_request(host, query=f"token={env.jwt['a']}"), SERVICE)
    in_url = auth_request(HostKind.STORAGE, query=f"token={env.jwt['a']}")
    with pytest.raises(Unauthorised):
        await env.authenticator.authenticate_storage(in_url, ANY_SCOPE)


async def test_guesses_count_together_at_all_addresses(env: AuthEnv) -> None:
    async def guess(number: int) -> type[Exception]:
        try:
            await env.authenticator.authenticate_gateway_token(
                auth_request(HostKind.AGENT, "rst_gw_" + "0" * 64, f"agent-{number}")
            )
        except (Unauthorised, TooManyAttempts) as error:
            return type(error)
        raise AssertionError

    assert [await guess(number) for number in range(ATTEMPTS + 1)] == [Unauthorised] * ATTEMPTS + [TooManyAttempts]


async def test_a_look_before_the_body_is_no_use_of_a_key(env: AuthEnv) -> None:
    caller = await env.keys.verify(env.jwt["a"])
    issued = await env.keys.mint(caller, "once", frozenset(), 1)
    request = auth_request(HostKind.STORAGE, issued.token.reveal())
    pair = auth_request(
        HostKind.STORAGE,
        headers={"pinata_api_key": issued.handle, "pinata_secret_api_key": issued.secret.reveal()},
    )
    for early in (request, pair):
        assert (await env.authenticator.identify_caller(early, UrlFamily.STORAGE)).tenant_id == caller.tenant_id
    await env.authenticator.authenticate_storage(request, ANY_SCOPE)
    with pytest.raises(Unauthorised):
        await env.authenticator.authenticate_storage(pair, ANY_SCOPE)


async def test_guessing_is_slowed_down_and_locks_nobody_out(env: AuthEnv) -> None:
    async def guess() -> str:
        try:
            await env.authenticator.authenticate_gateway_token(auth_request(HostKind.AGENT, "rst_gw_guess"))
        except TooManyAttempts as refusal:
            return "limited" if refusal.retry_after else "limited for ever"
        except Unauthorised:
            return "refused"
        return "entered"

    answers = [await guess() for _ in range(ATTEMPTS + 2)]
    assert answers == ["refused"] * ATTEMPTS + ["limited"] * 2
    await env.authenticator.authenticate_gateway_token(auth_request(HostKind.AGENT, env.token["agent-1"]))


@pytest.mark.parametrize(
    ("headers", "query", "token"),
    [
        ({"authorization": "Bearer x"}, "", "x"),
        ({"authorization": "bearer  x "}, "", "x"),
        ({"authorization": "Basic x"}, "token=y", ""),
        ({}, "token=a%20b", "a b"),
        ({}, "nottoken=1", None),
        ({}, "token=", None),
        ({"cookie": "gw_token=z"}, "", "z"),
        ({"cookie": 'gw_token="q"'}, "", "q"),
        ({"cookie": "other=1"}, "", None),
    ],
)
def test_where_a_credential_is_found(headers: dict, query: str, token: str | None) -> None:
    found = find_credential(headers, query)
    assert (found.token if found else None) == token
