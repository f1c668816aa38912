"""The pages outside agents, in both sizes, both languages and as a viewer: no error, no violation, no barrier."""

import pytest
from playwright.async_api import Browser, expect

from tests.dashboard.browser import SIZES, visiting
from tests.support.server import RunningServer

PAGES = [
    "/secrets",
    "/keys",
    "/skills",
    "/hub",
    "/templates",
    "/storage/files",
    "/storage/files?network=public",
    "/storage/groups",
    "/storage/gateways",
    "/storage/vectors",
    "/storage/payments",
]
HOSTILE = '<img src=x onerror="window.hacked=1">'


async def fill_tenant(server: RunningServer) -> None:
    """Give the tenant one of everything, so that pages show more than their empty states."""
    client = server.client(server.key(), "localhost")
    for path, body in (
        ("/v0/secrets", {"name": "TELEGRAM_TOKEN", "value": "x"}),
        ("/v0/secrets", {"name": "PLACE", "value": HOSTILE, "type": "variable"}),
        ("/v3/groups/private", {"name": HOSTILE}),
        ("/v3/gateways", {"domain": "mine"}),
    ):
        answer = await client.post(path, json=body)
        assert answer.status_code < 300, answer.text
    for network in ("private", "public"):
        await client.post("/v3/files", files={"file": ("a.txt", b"text")}, data={"network": network, "name": HOSTILE})


@pytest.mark.parametrize("size", SIZES)
async def test_empty_and_full_pages(browser: Browser, server: RunningServer, size: str) -> None:
    async with visiting(browser, server, size, role="owner") as visit:
        for path in PAGES:
            await visit.open(path)
            await visit.check()
        if size == "desktop":
            await fill_tenant(server)
        for path in PAGES:
            await visit.open(path)
            await visit.picture(path)
            await visit.check()
        assert await visit.page.evaluate("window.hacked") is None


async def test_a_viewer_sees_no_actions_in_german(browser: Browser, server: RunningServer) -> None:
    async with visiting(browser, server, role="viewer") as visit:
        await visit.page.evaluate("localStorage['roost.language'] = 'de'")
        for path in PAGES:
            await visit.open(path)
            await visit.check()
            for name in ("Löschen", "Neue", "Hochladen", "hochladen", "Widerrufen", "Anlegen"):
                await expect(visit.page.get_by_role("main").get_by_role("button", name=name)).to_have_count(0)
