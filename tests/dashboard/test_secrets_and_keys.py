"""Secrets and keys in the dashboard: made, changed, refused, revoked; what is secret is shown once or never."""

from typing import Any

from playwright.async_api import Browser, expect

from tests.dashboard.browser import visiting
from tests.support.server import RunningServer


async def test_secrets_are_created_changed_and_deleted(
    browser: Browser, server: RunningServer, agent: dict[str, Any]
) -> None:
    client = server.client(server.key())
    async with visiting(browser, server, role="editor") as visit:
        page = visit.page
        await visit.open("/secrets")
        await page.get_by_role("button", name="New secret").click()
        await page.get_by_role("textbox", name="Name").fill("BOT_TOKEN")
        await page.get_by_label("Value", exact=True).fill("s3cret")
        await page.get_by_role("button", name="Create secret").click()
        await expect(page.get_by_role("cell", name="BOT_TOKEN", exact=True)).to_be_visible()
        await page.get_by_role("button", name="Change BOT_TOKEN").click()
        await page.get_by_label("New value").fill("other")
        await visit.check()
        await page.get_by_role("button", name="Change", exact=True).click()
        await expect(page.get_by_text("BOT_TOKEN was changed.")).to_be_visible()
        assert "s3cret" not in await page.content()
        secret = (await client.get("/v0/secrets")).json()["secrets"][0]
        attached = await client.post(f"/v0/agents/{agent['agentId']}/secrets", json={"secretIds": [secret["id"]]})
        assert attached.status_code < 300, attached.text
        await visit.open("/secrets")
        await page.get_by_role("button", name="Delete BOT_TOKEN").click()
        dialog = page.get_by_role("alertdialog")
        await expect(dialog.get_by_role("link", name="Ada")).to_be_visible()
        assert visit.problems == []
        await dialog.get_by_role("button", name="Delete").click()
        await expect(dialog.get_by_role("alert")).to_contain_text("attached")
        await expect(dialog.get_by_role("alert")).to_contain_text("Request")
        await client.delete(f"/v0/agents/{agent['agentId']}/secrets/{secret['id']}")
        await dialog.get_by_role("button", name="Delete").click()
        await expect(page.get_by_role("heading", name="No secrets yet")).to_be_visible()


async def test_keys_are_created_and_revoked(browser: Browser, server: RunningServer) -> None:
    async with visiting(browser, server, role="owner") as visit:
        page = visit.page
        await visit.open("/keys")
        await page.get_by_role("button", name="New key").click()
        await page.get_by_role("textbox", name="Name").fill("backup")
        await expect(page.get_by_role("button", name="Create key")).to_be_disabled()
        await page.get_by_label("Read files").check()
        await page.get_by_label("Number of uses").fill("none")
        await expect(page.get_by_text("Enter a whole number from 1.")).to_be_visible()
        await page.get_by_label("Number of uses").fill("5")
        await visit.check()
        await page.get_by_role("button", name="Create key").click()
        shown = page.get_by_role("alertdialog")
        token = await shown.locator("pre").inner_text()
        await visit.check()
        assert (await server.client(token, "localhost").get("/v3/files/private")).status_code == 200
        assert (await server.client(token, "localhost").get("/v0/agents")).status_code == 403
        await shown.get_by_role("button", name="Done").click()
        assert token not in await page.content()
        await page.get_by_role("button", name='Revoke "backup"').click()
        await page.get_by_role("alertdialog").get_by_role("button", name="Revoke").click()
        await expect(page.get_by_text('"backup" was revoked.')).to_be_visible()
        await expect(page.get_by_role("cell", name="backup", exact=True)).to_have_count(0)
        assert (await server.client(token, "localhost").get("/v3/files/private")).status_code == 401
        assert visit.problems == []


async def test_a_revoked_key_and_the_tokens_that_its_holder_has(
    browser: Browser, server: RunningServer, agent: dict[str, Any]
) -> None:
    """They are named, and go on working unless they are replaced."""
    path, keys = f"/v0/agents/{agent['agentId']}/gateway-token", server.client(server.key(), "api.localhost")
    async with visiting(browser, server, role="owner") as visit:
        page = visit.page
        for name, replaces in (("leaver", False), ("other leaver", True)):
            made = await keys.post("/v3/pinata/keys", json={"keyName": name, "permissions": {"admin": True}})
            token = (await server.client(made.json()["JWT"]).get(path)).json()["token"]
            await visit.open("/keys")
            await page.get_by_role("button", name=f'Revoke "{name}"').click()
            dialog = page.get_by_role("alertdialog")
            await expect(dialog.get_by_text("go on working: Ada.")).to_be_visible()
            await visit.check()
            if replaces:
                await dialog.get_by_label("Replace these tokens, too.").check()
            await dialog.get_by_role("button", name="Revoke").click()
            await expect(page.get_by_text(f'"{name}" was revoked.')).to_be_visible()
            status = (await server.agent_client({**agent, "gatewayToken": token}).get("/v0/status")).status_code
            assert status == (401 if replaces else 200)
        assert visit.problems == []
