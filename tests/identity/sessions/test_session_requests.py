"""Where the cookie counts, before which other credentials it does not, and what it needs for a change."""

from typing import Any

import pytest

from roost.core.db import Database
from roost.identity.auth_request import AuthRequest, session_cookie_pair
from roost.identity.caller import Role
from roost.identity.errors import ForeignOrigin, InvalidCsrfToken, MissingCredential, TooManyAttempts, Unauthorised
from roost.identity.sessions.service import BrowserSessions
from roost.identity.throttle import FailedLoginThrottle
from roost.web.url_rule import HostAddress, HostKind
from tests.identity.sessions.test_service import SessionEnv

OWN = "http://localhost:8642"


class Visitor:
    """A browser with a session."""

    def __init__(self, env: SessionEnv, token: str, csrf: str) -> None:
        self.authenticator = BrowserSessions(env.database, env.keys, FailedLoginThrottle(2), OWN)
        self.token, self.csrf = token, csrf

    def request(self, method: str = "GET", query: str = "", upgrade: bool = False, **changes: Any) -> AuthRequest:
        headers = {"cookie": f"roost_session={self.token}"}
        headers |= changes.pop("headers", {})
        host = HostAddress(HostKind.LOCAL, OWN, session_cookie=changes.pop("session_cookie", "roost_session"))
        options: dict[str, Any] = {"limited_client": "192.0.2.1"}
        return AuthRequest(host, method, headers, query, "127.0.0.1", upgrade=upgrade, **options | changes)


@pytest.fixture
async def visitor(database: Database) -> Visitor:
    env = SessionEnv(database)
    started = await env.sessions.redeem_code(await env.code(Role.EDITOR), None)
    return Visitor(env, started.token.reveal(), started.detail.csrf_token)


async def test_the_cookie_counts_alone_and_at_the_dashboard(visitor: Visitor) -> None:
    find = visitor.authenticator.find_caller
    found = await find(visitor.request())
    assert found is not None
    assert found.role is Role.EDITOR
    for other in (
        visitor.request(session_cookie=None),
        visitor.request(session_cookie="__Host-roost_session"),
        visitor.request(query="token=x"),
        visitor.request(headers={"authorization": "Bearer x"}),
        visitor.request(headers={"pinata_api_key": "a", "pinata_secret_api_key": "b"}),
        visitor.request(headers={"cookie": "gw_token=x"}),
    ):
        assert await find(other) is None
        with pytest.raises(MissingCredential):
            await visitor.authenticator.authenticate(other)
    both = visitor.request(headers={"cookie": f"gw_token=x; roost_session={visitor.token}"})
    assert await find(both) == found
    assert session_cookie_pair(both) == f"roost_session={visitor.token}"


async def test_changes_need_the_token_and_the_own_origin(visitor: Visitor) -> None:
    find, csrf = visitor.authenticator.find_caller, {"x-csrf-token": visitor.csrf}
    for method in ("POST", "PUT", "PATCH", "DELETE", "QUERY"):
        assert await find(visitor.request(method, headers=csrf)) is not None
        for wrong in ({}, {"x-csrf-token": ""}, {"x-csrf-token": visitor.csrf[:-1]}, {"x-csrf-token": "\xe9"}):
            with pytest.raises(InvalidCsrfToken):
                await find(visitor.request(method, headers=wrong))
        for foreign in ({"origin": "http://evil.example"}, {"sec-fetch-site": "same-site"}):
            with pytest.raises(ForeignOrigin):
                await find(visitor.request(method, headers=csrf | foreign))


async def test_websockets_need_the_own_origin(visitor: Visitor) -> None:
    find = visitor.authenticator.find_caller
    assert await find(visitor.request(upgrade=True, headers={"origin": OWN})) is not None
    for origin in (None, "null", "http://localhost", "http://localhost:8642.evil.example"):
        with pytest.raises(ForeignOrigin):
            await find(visitor.request(upgrade=True, headers={} if origin is None else {"origin": origin}))


async def test_false_cookies_are_throttled(visitor: Visitor) -> None:
    visitor.token = "rst_session_" + "0" * 64
    for _ in range(2):
        with pytest.raises(Unauthorised):
            await visitor.authenticator.find_caller(visitor.request())
    with pytest.raises(TooManyAttempts):
        await visitor.authenticator.find_caller(visitor.request())
