"""Payment instructions and payments, and files that a wallet of the browser signs, in the dashboard."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from playwright.async_api import Browser, Page, expect

from roost.identity import tenants
from roost.storage.payments import store
from roost.storage.payments.model import Payment, PaymentState
from tests.dashboard.browser import visiting
from tests.support.server import RunningServer
from tests.support.wallet import Account, LocalAccount, encode_defunct, encode_typed_data

SELLER = "0x209693Bc6afc0C5328bA36FaF03C514EF312287C"
USDC = "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913"
WALLET = """
window.testChain = '0x1';
const provider = { request: ({ method, params }) => window.askTestWallet(method, params ?? [], window.testChain) };
const info = { uuid: '350670db-19fa-4704-a166-e52e178b59d2', name: 'Test Wallet', icon: 'data:,', rdns: 'com.example' };
addEventListener('eip6963:requestProvider', () => {
  dispatchEvent(new CustomEvent('eip6963:announceProvider', { detail: Object.freeze({ info, provider }) }));
});
"""


async def upload_file(server: RunningServer, name: str) -> dict[str, Any]:
    client = server.client(server.key(), "localhost")
    answer = await client.post("/v3/files", files={"file": (name, name.encode())}, data={"network": "private"})
    return answer.json()["data"]


async def test_instructions_are_created_and_removed(browser: Browser, server: RunningServer) -> None:
    file = await upload_file(server, "sold.txt")
    async with visiting(browser, server, role="editor") as visit:
        page = visit.page
        await visit.open("/storage/payments")
        await page.get_by_role("button", name="New payment instruction").click()
        await page.get_by_role("textbox", name="Name").fill("Articles")
        await page.get_by_role("textbox", name="Amount in USDC").fill("0.0000001")
        await page.get_by_role("textbox", name="Your address").fill(SELLER)
        await expect(page.get_by_text("An amount above 0")).to_be_visible()
        await expect(page.get_by_role("button", name="Create instruction")).to_be_disabled()
        await page.get_by_role("textbox", name="Amount in USDC").fill("0.01")
        await visit.picture("payment-instruction")
        await visit.check()
        await page.get_by_role("button", name="Create instruction").click()
        await expect(page.get_by_text("0.01 USDC on base")).to_be_visible()
        await page.get_by_role("button", name="Attach to files").click()
        await page.get_by_role("textbox", name="CIDs").fill("bafkwrong")
        await page.get_by_role("button", name="Attach", exact=True).click()
        await page.get_by_role("alertdialog").get_by_role("button", name="Attach").click()
        await expect(page.get_by_role("dialog").get_by_role("alert")).to_be_visible()
        visit.problems.clear()
        await page.get_by_role("textbox", name="CIDs").fill(file["cid"])
        await page.get_by_role("button", name="Attach", exact=True).click()
        await page.get_by_role("alertdialog").get_by_role("button", name="Attach").click()
        await expect(page.get_by_role("button", name=f"Remove {file['cid']}")).to_be_visible()
        await page.get_by_role("button", name="Change Articles").click()
        await page.get_by_role("textbox", name="Amount in USDC").fill("0.5")
        await page.get_by_role("button", name="Save", exact=True).click()
        await page.get_by_role("alertdialog").get_by_role("button", name="Save").click()
        await expect(page.get_by_text("0.5 USDC on base")).to_be_visible()
        await page.get_by_role("button", name=f"Remove {file['cid']}").click()
        await page.get_by_role("alertdialog").get_by_role("button", name="Remove").click()
        await expect(page.get_by_text("It is attached to no file.")).to_be_visible()
        await page.get_by_role("button", name="Delete Articles").click()
        await page.get_by_role("alertdialog").get_by_role("button", name="Delete").click()
        await expect(page.get_by_role("heading", name="No payment instructions yet")).to_be_visible()
        assert visit.problems == []


async def test_payments_and_totals(browser: Browser, server: RunningServer) -> None:
    file = await upload_file(server, "paid.txt")
    client = server.client(server.key(), "localhost")
    requirement = {"network": "base", "asset": USDC, "pay_to": SELLER, "amount": "10000"}
    instruction = (
        await client.post("/v3/x402/payment_instructions", json={"name": "Sold", "payment_requirements": [requirement]})
    ).json()["data"]
    for number, state in enumerate((PaymentState.SETTLED, PaymentState.SETTLED, PaymentState.REFUSED)):
        add_payment(server, instruction["id"], file["cid"], number, state)
    for size in ("desktop", "phone"):
        async with visiting(browser, server, size, role="viewer") as visit:
            await visit.open("/storage/payments")
            await expect(visit.page.get_by_role("region", name="Totals").get_by_text("0.02 USDC")).to_be_visible()
            await expect(visit.page.get_by_text("insufficient funds")).to_be_visible()
            await expect(visit.page.get_by_role("button", name="Delete")).to_have_count(0)
            await visit.picture("payments")
            await visit.check()
            await visit.page.get_by_role("button", name="State").click()
            await visit.page.get_by_role("option", name="Refused").click()
            await expect(visit.page.get_by_role("table").last.get_by_text("Settled", exact=True)).to_have_count(0)
            assert visit.problems == []


async def test_a_wallet_signs_a_file(browser: Browser, server: RunningServer) -> None:
    file = await upload_file(server, "signed.txt")
    account = Account.create()
    async with visiting(browser, server, role="editor") as visit:
        page, asked = visit.page, await connect_wallet(visit.page, account)
        await visit.open("/storage/files")
        await page.get_by_role("button", name="signed.txt", exact=True).click()
        dialog = page.get_by_role("dialog")
        sign = dialog.get_by_role("button", name="Sign with Test Wallet")
        for chain, method in (("0x1", "eth_signTypedData_v4"), ("0x2105", "personal_sign")):
            await page.evaluate(f"window.testChain = '{chain}'")
            await sign.click()
            await expect(dialog.get_by_text("Signed", exact=True)).to_be_visible()
            assert asked[-1] == method
            found = await server.client(server.key(), "localhost").get(f"/v3/files/private/signature/{file['cid']}")
            shown = await dialog.get_by_role("region", name="Signature").inner_text()
            assert shown == found.json()["data"]["signature"]
            await visit.picture("file-signed")
            await visit.check()
            await dialog.get_by_role("button", name="Remove the signature").click()
            await expect(sign).to_be_enabled()
        await page.evaluate("window.testChain = 'decline'")
        await sign.click()
        await expect(dialog.get_by_text("The wallet did not sign.")).to_be_visible()
        assert visit.problems == []


async def test_without_a_wallet_the_dialog_names_the_command(browser: Browser, server: RunningServer) -> None:
    file = await upload_file(server, "unsigned.txt")
    async with visiting(browser, server, "phone", role="editor") as visit:
        await visit.open("/storage/files")
        await visit.page.get_by_role("button", name="unsigned.txt", exact=True).click()
        command = visit.page.get_by_role("region", name="Command that adds a signature")
        await expect(command).to_contain_text(f"roost signatures add {file['cid']} --address")
        await command.scroll_into_view_if_needed()
        await visit.picture("file-unsigned")
        await visit.check()


async def connect_wallet(page: Page, account: LocalAccount) -> list[str]:
    """Give the page a wallet whose account is here; return the list of the methods that it is asked."""
    asked: list[str] = []

    def answer(method: str, params: Sequence[Any], chain: str) -> object:
        asked.append(method)
        if method == "eth_chainId":
            return chain
        if method == "eth_requestAccounts":
            return [account.address] if chain != "decline" else []
        if method == "personal_sign":
            signable = encode_defunct(hexstr=params[0])
        else:
            signable = encode_typed_data(full_message=json.loads(params[1]))
        return "0x" + account.sign_message(signable).signature.hex().removeprefix("0x")

    await page.expose_function("askTestWallet", answer)
    await page.add_init_script(WALLET)
    return asked


def add_payment(server: RunningServer, instruction_id: str, cid: str, number: int, state: PaymentState) -> None:
    """Store a payment as if a visitor had paid; no chain is at hand."""
    now = datetime(2026, 1, 2, 3, number, tzinfo=UTC)
    payer, nonce = f"0x{number:040x}", f"0x{number:064x}"
    reason = "insufficient funds" if state is PaymentState.REFUSED else None

    def insert(connection: Any) -> bool:
        tenant = tenants.ensure_tenant(connection, "acme")
        terms = ("eip155:8453", USDC.lower(), payer, nonce, SELLER.lower(), "10000")
        return store.insert_payment(
            connection,
            Payment(
                *(f"payment-{number}", tenant.id, instruction_id, 1, cid),
                *terms,
                *("0" * 64, state, 1, now, now, now),
                transaction_hash=f"0x{number:064x}" if state is PaymentState.SETTLED else None,
                reason=reason,
            ),
        )

    assert server.roost.core.db.run(insert)
