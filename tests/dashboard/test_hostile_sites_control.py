"""The attacks of hostile pages, with defences taken away: what then succeeds shows that the tests of them can fail."""

from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

import pytest
from playwright.async_api import Browser, Route

from roost.http.dashboard import application, static_files
from roost.identity.credentials import session_headers
from roost.identity.sessions import api, service
from tests.dashboard.test_hostile_sites import SIGN_IN, HostileSites, _tenant, attack, browser, public, signed_in

__all__ = ["browser", "public"]
Disable = Callable[[pytest.MonkeyPatch], None]
READS, SOCKET = "GET /v0/agents", "socket logs"
CHANGE = "POST /v0/agents/{id}/restart"


def cross_site_headers(*given: Any) -> Mapping[str, str]:
    return {name: value.replace("SameSite=Strict", "SameSite=None") for name, value in session_headers(*given).items()}


DISABLE: Mapping[str, Disable] = {
    "origin": lambda patch: patch.setattr(service, "check_same_origin", lambda *_, **__: None),
    "csrf": lambda patch: patch.setattr(service, "compare_digest", lambda *_: True),
    "same site": lambda patch: patch.setattr(api, "session_headers", cross_site_headers),
    "sign-in": lambda patch: patch.setattr(api, "check_same_origin", lambda *_, **__: None),
    "framing": lambda patch: patch.setattr(
        application, "_POLICY", application._POLICY.replace("frame-ancestors 'none'; ", "")
    ),
    "opener": lambda patch: patch.setattr(
        static_files, "_HEADERS", {**static_files._HEADERS, "cross-origin-opener-policy": "unsafe-none"}
    ),
}


@pytest.fixture(autouse=True)
async def delete_other_agents(public: HostileSites) -> AsyncIterator[None]:
    """Delete the agents that an attack created."""
    yield
    client = public.server.client(public.server.key(), public.management)
    for agent in (await client.get("/v0/agents")).json()["agents"]:
        if agent["name"] != "Ada":
            await client.delete(f"/v0/agents/{agent['agentId']}")


@pytest.mark.parametrize(
    ("kind", "disabled", "expected"),
    [
        ("an agent", {"origin"}, {READS, SOCKET}),
        ("an agent", {"origin", "csrf"}, {READS, SOCKET, CHANGE}),
        ("another site", {"origin", "same site", "csrf"}, {"POST in a window"}),
        ("another site", {"framing"}, {"frame shown"}),
        ("another site", {"opener"}, {"opener"}),
    ],
)
async def test_without_a_defence(
    browser: Browser,
    public: HostileSites,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
    disabled: set[str],
    expected: set[str],
) -> None:
    for name in disabled:
        DISABLE[name](monkeypatch)
    succeeded = await attack(browser, public, kind)
    assert expected <= succeeded
    assert ("csrf" in disabled) == bool({CHANGE, "POST in a window"} & succeeded)


@pytest.mark.parametrize("left", ["same site", "origin", "csrf"])
async def test_each_defence_is_enough_against_other_sites(
    browser: Browser, public: HostileSites, monkeypatch: pytest.MonkeyPatch, left: str
) -> None:
    for name in {"same site", "origin", "csrf"} - {left}:
        DISABLE[name](monkeypatch)
    assert await attack(browser, public, "another site") == set()


async def send_as_json(route: Route) -> None:
    """Let a request pass with a type of its body that pages cannot set without leave of the server (CORS)."""
    await route.continue_(headers={**route.request.headers, "content-type": "application/json"})


@pytest.mark.parametrize(("checks", "expected"), [(True, "acme"), (False, "mallory")])
async def test_signing_a_browser_in(
    browser: Browser, public: HostileSites, monkeypatch: pytest.MonkeyPatch, checks: bool, expected: str
) -> None:
    if not checks:
        DISABLE["sign-in"](monkeypatch)
    async with signed_in(browser, public) as (context, dashboard):
        code = (await public.link("mallory")).partition("#code=")[2]
        hostile = await context.new_page()
        await hostile.route("**/v0/session", send_as_json)
        await hostile.goto(public.pages["an agent"])
        async with hostile.expect_response("**/v0/session"):
            await hostile.evaluate(SIGN_IN, {"target": public.dashboard, "code": code})
        assert await _tenant(dashboard) == expected
