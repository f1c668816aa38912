"""Sessions and links as rows, on both databases."""

import asyncio
from datetime import timedelta

import pytest

from roost.core import clock
from roost.core.db import Database
from roost.core.seal import Sealer
from roost.core.sensitive import Sensitive
from roost.identity import tenants
from roost.identity.api_keys import ApiKeys
from roost.identity.caller import Caller, Role
from roost.identity.errors import InvalidLoginCode, KeyOpensNoSession, TooManyAttempts, Unauthorised
from roost.identity.sessions import service, store
from roost.identity.sessions.model import LINK_LIMIT, SESSION_LIMIT
from roost.identity.sessions.service import BrowserSessions
from roost.identity.throttle import FailedLoginThrottle

URL = "http://localhost:8642"


class SessionEnv:
    """Sessions of a tenant with one key. `other` is another process with the same database."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.keys = ApiKeys(database, Sealer(Sensitive(bytes(32))))
        self.sessions = BrowserSessions(database, self.keys, FailedLoginThrottle(3), URL)
        self.other = BrowserSessions(database, self.keys, FailedLoginThrottle(3), URL)
        self.jwt = self.issue()

    def issue(self, *scopes: str, tenant: str = "a") -> str:
        return self.database.run(
            lambda c: self.keys.issue(c, tenants.ensure_tenant(c, tenant), "k", scopes=frozenset(scopes)).reveal()
        )

    async def caller(self) -> Caller:
        return await self.keys.verify(self.jwt)

    async def code(self, role: Role = Role.OWNER) -> str:
        link = await self.sessions.create_link(await self.caller(), role)
        return link.url.reveal().removeprefix(f"{URL}/login#code=")

    async def revoke(self) -> None:
        caller = await self.caller()
        await self.keys.revoke(caller.tenant_id, caller.key_id or "")


@pytest.fixture
def env(database: Database) -> SessionEnv:
    return SessionEnv(database)


def pass_time(monkeypatch: pytest.MonkeyPatch, **passed: float) -> None:
    now = clock.utc_now() + timedelta(**passed)
    monkeypatch.setattr(clock, "utc_now", lambda: now)


async def test_a_code_opens_one_session(env: SessionEnv) -> None:
    code = await env.code(Role.EDITOR)
    outcomes = await asyncio.gather(
        *(sessions.redeem_code(code, None) for sessions in (env.sessions, env.other) for _ in range(4)),
        return_exceptions=True,
    )
    (started,) = [each for each in outcomes if not isinstance(each, BaseException)]
    assert sum(isinstance(each, InvalidLoginCode) for each in outcomes) == 7
    caller = await env.other.verify(started.token.reveal())
    assert (caller.role, caller.key_id) == (Role.EDITOR, (await env.caller()).key_id)
    assert await env.other.describe(caller) == started.detail
    assert started.token.reveal().startswith("rst_session_")


async def test_no_token_or_code_is_stored(env: SessionEnv) -> None:
    code = await env.code()
    started = await env.sessions.sign_in(env.jwt, None)
    rows = env.database.run(
        lambda c: [*c.execute(store.browser_sessions.select()), *c.execute(store.session_links.select())]
    )
    assert len(rows) == 2
    for secret in (code, started.token.reveal(), started.detail.csrf_token):
        assert secret not in str(rows)
        assert secret not in repr(started.token)


async def test_guesses_are_throttled_and_codes_are_not(env: SessionEnv) -> None:
    code = await env.code()
    for number in range(3):
        with pytest.raises(InvalidLoginCode):
            await env.sessions.redeem_code(f"rst_login_{number:064x}", "192.0.2.1")
    with pytest.raises(TooManyAttempts):
        await env.sessions.redeem_code("rst_login_", "192.0.2.1")
    with pytest.raises(TooManyAttempts):
        await env.sessions.sign_in(env.jwt[:-1], "192.0.2.1")
    assert (await env.sessions.redeem_code(code, "192.0.2.1")).detail.role is Role.OWNER


async def test_a_new_link_invalidates_the_oldest(env: SessionEnv, monkeypatch: pytest.MonkeyPatch) -> None:
    codes = []
    for _ in range(LINK_LIMIT + 1):
        codes.append(await env.code())
        pass_time(monkeypatch, milliseconds=1)
    with pytest.raises(InvalidLoginCode):
        await env.sessions.redeem_code(codes[0], None)
    for code in codes[1:]:
        await env.sessions.redeem_code(code, None)
    late = await env.code()
    pass_time(monkeypatch, minutes=10)
    with pytest.raises(InvalidLoginCode):
        await env.sessions.redeem_code(late, None)


async def test_ended_sessions_and_links_leave_no_rows(env: SessionEnv, monkeypatch: pytest.MonkeyPatch) -> None:
    await env.code()
    await env.sessions.sign_in(env.jwt, None)
    pass_time(monkeypatch, hours=13)
    await env.sessions.sign_in(env.jwt, None)
    await env.code()
    counts = env.database.run(
        lambda c: [len(c.execute(table.select()).all()) for table in (store.browser_sessions, store.session_links)]
    )
    assert counts == [1, 1]


async def test_one_tenant_ends_no_session_of_another(env: SessionEnv) -> None:
    theirs = await env.sessions.sign_in(env.issue(tenant="b"), None)
    for _ in range(SESSION_LIMIT + 1):
        await env.sessions.sign_in(env.jwt, None)
    assert (await env.other.verify(theirs.token.reveal())).role is Role.OWNER
    assert env.database.run(lambda c: len(c.execute(store.browser_sessions.select()).all())) == SESSION_LIMIT + 1


async def test_of_too_many_sessions_the_one_that_was_used_first_ends(
    env: SessionEnv, monkeypatch: pytest.MonkeyPatch
) -> None:
    used, unused = [(await env.sessions.sign_in(env.jwt, None)).token.reveal() for _ in range(2)]
    pass_time(monkeypatch, minutes=6)
    await env.sessions.verify(used)
    for _ in range(SESSION_LIMIT - 1):
        await env.sessions.sign_in(env.jwt, None)
    assert (await env.other.verify(used)).role is Role.OWNER
    with pytest.raises(Unauthorised):
        await env.other.verify(unused)


async def test_use_keeps_a_session_for_seven_days(env: SessionEnv, monkeypatch: pytest.MonkeyPatch) -> None:
    token = (await env.sessions.sign_in(env.jwt, None)).token.reveal()
    for _ in range(15):
        pass_time(monkeypatch, hours=11)
        await BrowserSessions(env.database, env.keys, FailedLoginThrottle(), URL).verify(token)
    pass_time(monkeypatch, hours=3, minutes=1)
    with pytest.raises(Unauthorised):
        await env.other.verify(token)


async def test_a_session_ends_with_its_key_or_by_signing_out(env: SessionEnv) -> None:
    kept, left = [await env.sessions.sign_in(env.jwt, None) for _ in range(2)]
    code = await env.code()
    await env.sessions.end(await env.sessions.verify(left.token.reveal()))
    for sessions in (env.sessions, env.other):
        with pytest.raises(Unauthorised):
            await sessions.verify(left.token.reveal())
    caller = await env.caller()
    await env.revoke()
    for ended in (kept.token.reveal(), "rst_session_" + "0" * 64, "", "x" * 5000):
        with pytest.raises(Unauthorised):
            await env.other.verify(ended)
    with pytest.raises(InvalidLoginCode):
        await env.sessions.redeem_code(code, None)
    with pytest.raises(Unauthorised):
        await env.sessions.create_link(caller, Role.VIEWER)


async def test_all_sessions_of_a_key_end_at_once(env: SessionEnv) -> None:
    opened = [(await env.sessions.sign_in(env.jwt, None)).token.reveal() for _ in range(2)]
    code, caller = await env.code(), await env.sessions.verify(opened[0])
    assert await env.sessions.verify(opened[1])
    assert await env.sessions.end_all(caller) == 2
    for sessions in (env.sessions, env.other):
        for token in opened:
            with pytest.raises(Unauthorised):
                await sessions.verify(token)
    with pytest.raises(InvalidLoginCode):
        await env.sessions.redeem_code(code, None)
    assert await env.sessions.sign_in(env.jwt, None)


async def test_a_held_stream_ends_with_the_session(env: SessionEnv, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "_WATCH_SECONDS", 0.01)
    caller = await env.sessions.verify((await env.sessions.sign_in(env.jwt, None)).token.reveal())

    async def follow() -> None:
        async with env.sessions.hold_open(caller.session_digest or b""):
            await env.other.end(caller)
            await asyncio.Event().wait()

    with pytest.raises(Unauthorised):
        await asyncio.wait_for(follow(), 5)


async def test_keys_without_rights_open_nothing(env: SessionEnv) -> None:
    minted = await env.keys.mint(await env.caller(), "counted", frozenset(), max_uses=2)
    with pytest.raises(KeyOpensNoSession):
        await env.sessions.sign_in(minted.token.reveal(), None)
    writer = await env.keys.verify(env.issue("org:agents:write"))
    link = await env.sessions.create_link(writer, Role.VIEWER)
    with pytest.raises(KeyOpensNoSession):  # it has no scope to read, and none at all would be all
        await env.sessions.redeem_code(link.url.reveal().partition("#code=")[2], None)
