"""Payments on a chain of its own: `roost up`, `roost facilitator`, and clients that pay by the SDK of x402."""

import asyncio
import re
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import httpx2
import pytest
from x402 import x402Client
from x402.http.clients import x402AsyncTransport
from x402.http.utils import decode_payment_response_header
from x402.mechanisms.evm import EthAccountSigner
from x402.mechanisms.evm.exact import register_exact_evm_client

from tests.chain.anvil import NETWORK, OLD_NETWORK, Chain
from tests.chain.payer import SELLER, encode
from tests.journeys.paid_file import CONTENT, PRICE, PaidFile, facilitator_process, upload_paid_file
from tests.journeys.server_process import up
from tests.support.databases import postgres_copy
from tests.support.wallet import Account, LocalAccount


@pytest.fixture(scope="module")
def facilitator(chain: Chain, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with facilitator_process(chain, tmp_path_factory.mktemp("f")) as url:
        yield url


@pytest.fixture(scope="module")
def paid_file(facilitator: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PaidFile]:
    folder = tmp_path_factory.mktemp("shop") / "data"
    with up(folder, "--no-first-agent", ROOST_FACILITATOR_URL=facilitator) as server:
        yield upload_paid_file(server)


@pytest.fixture
def payer(chain: Chain) -> LocalAccount:
    """Return an account with tokens for two payments."""
    account = Account.create()
    chain.mint(account.address, 2 * PRICE)
    return account


class _OneVersion(httpx.AsyncBaseTransport):
    """Hides the header of version 2 from a client, which then pays by version 1."""

    def __init__(self) -> None:
        self._inner = httpx.AsyncHTTPTransport()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        response = await self._inner.handle_async_request(request)
        response.headers.pop("payment-required", None)
        return response

    async def aclose(self) -> None:
        await self._inner.aclose()


@pytest.mark.parametrize("version", [1, 2])
async def test_the_sdks_client_pays(paid_file: PaidFile, chain: Chain, payer: LocalAccount, version: int) -> None:
    wallet = register_exact_evm_client(x402Client(), EthAccountSigner(payer))
    transport = x402AsyncTransport(wallet, _OneVersion() if version == 1 else None)
    before = chain.balance(SELLER)
    async with httpx.AsyncClient(transport=transport, **paid_file.visitor) as client:
        answers = [await client.get(paid_file.path) for _ in range(2)]
    assert [(answer.status_code, answer.content == CONTENT) for answer in answers] == [(200, True)] * 2, answers[0].text
    name = "payment-response" if version == 2 else "x-payment-response"
    receipt = decode_payment_response_header(answers[0].headers[name])
    assert (receipt.success, receipt.network) == (True, NETWORK if version == 2 else OLD_NETWORK)
    assert chain.call("eth_getTransactionReceipt", receipt.transaction)["status"] == "0x1"
    assert (chain.balance(SELLER), chain.balance(payer.address)) == (before + 2 * PRICE, 0)


async def test_fifty_uses_of_one_payment(paid_file: PaidFile, chain: Chain, payer: LocalAccount) -> None:
    payment, before = await paid_file.pay(payer), chain.balance(SELLER)
    async with httpx2.AsyncClient(**paid_file.visitor) as client:
        gets = (client.get(paid_file.path, headers={"X-PAYMENT": encode(payment)}) for _ in range(50))
        statuses = [answer.status_code for answer in await asyncio.gather(*gets)]
    assert sorted(statuses) == [200] + [402] * 49
    assert chain.balance(SELLER) == before + PRICE


async def test_the_command_line_shows_what_was_paid(paid_file: PaidFile, payer: LocalAccount) -> None:
    assert paid_file.get(await paid_file.pay(payer)).content == CONTENT
    listed = paid_file.server.roost("payments", "list", "--cid", paid_file.cid, "--state", "settled")
    assert listed.returncode == 0, listed.stderr
    assert "settled" in listed.stdout
    totals = paid_file.server.roost("payments", "totals", "-o", "json")
    assert '"amount"' in totals.stdout
    for arguments in (["--state", "paid"], ["--cid", "x"]):
        assert paid_file.server.roost("payments", "list", *arguments).returncode != 0


class HeldFacilitator:
    """Passes requests on to a facilitator; while `holds`, the answers to settlements are lost."""

    def __init__(self, url: str) -> None:
        self.holds = False
        self.settled = threading.Event()
        self.ended = threading.Event()
        held = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                reply = httpx2.post(f"{url}{self.path}", content=body, timeout=30, trust_env=False)
                if held.holds and self.path == "/settle":
                    held.settled.set()
                    held.ended.wait(60)
                    return
                self.send_response(reply.status_code)
                self.send_header("Content-Length", str(len(reply.content)))
                self.end_headers()
                self.wfile.write(reply.content)

            def log_message(self, *_: object) -> None: ...

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    @contextmanager
    def serve(self) -> Iterator["HeldFacilitator"]:
        thread = threading.Thread(target=self._server.serve_forever)
        thread.start()
        try:
            yield self
        finally:
            self.ended.set()
            self._server.shutdown()
            thread.join()
            self._server.server_close()


async def test_a_server_that_is_killed_while_it_settles(
    chain: Chain, facilitator: str, payer: LocalAccount, tmp_path: Path
) -> None:
    """The money has moved and the server knows nothing of it: the same payment gets the content, and is taken once."""
    data = tmp_path / "data"
    with (
        HeldFacilitator(facilitator).serve() as held,
        up(data, "--no-first-agent", ROOST_FACILITATOR_URL=held.url) as server,
    ):
        paid_file = upload_paid_file(server)
        payment, before = await paid_file.pay(payer), chain.balance(SELLER)
        held.holds = True
        presenting = asyncio.create_task(asyncio.to_thread(paid_file.get, payment))
        assert await asyncio.to_thread(held.settled.wait, 60)
        server.kill()
        with pytest.raises(httpx2.HTTPError):
            await presenting
        assert chain.balance(SELLER) == before + PRICE
        held.holds = False
        server.start()
        paid_file = PaidFile(
            server, re.sub(r":\d+$", f":{server.url.rpartition(':')[2]}", paid_file.host), paid_file.cid
        )
        assert "being settled" in paid_file.get(payment).json()["error"]
        with sqlite3.connect(data / "roost.db") as database:  # as half a minute later
            assert database.execute("SELECT state FROM payments").fetchall() == [("settling",)]
            database.execute("UPDATE payments SET claimed_until = created_at")
        assert paid_file.get(payment).content == CONTENT
        assert "presented before" in paid_file.get(payment).json()["error"]
        assert (chain.balance(SELLER), chain.balance(payer.address)) == (before + PRICE, PRICE)


@pytest.mark.postgres
async def test_two_servers_on_one_database(
    chain: Chain,
    facilitator: str,
    payer: LocalAccount,
    tmp_path: Path,
    postgres_url: str,
    request: pytest.FixtureRequest,
) -> None:
    template = request.getfixturevalue("_postgresql_template")
    for url in postgres_copy(postgres_url, template):
        blobs, kek = tmp_path / "blobs", "ab" * 32
        shared = {"ROOST_DATABASE_URL": url, "ROOST_BLOBS": str(blobs), "ROOST_KEK": kek}
        shared["ROOST_FACILITATOR_URL"] = facilitator
        with (
            up(tmp_path / "one", "--no-first-agent", **shared) as one,
            up(tmp_path / "two", "--no-first-agent", **shared) as two,
        ):
            first = upload_paid_file(one)
            second = PaidFile(two, re.sub(r":\d+$", f":{two.url.rpartition(':')[2]}", first.host), first.cid)
            payment, before = await first.pay(payer), chain.balance(SELLER)
            gets = (asyncio.to_thread(paid_file.get, payment) for paid_file in (first, second) * 10)
            statuses = [answer.status_code for answer in await asyncio.gather(*gets)]
            assert sorted(statuses) == [200] + [402] * 19
            assert chain.balance(SELLER) == before + PRICE
