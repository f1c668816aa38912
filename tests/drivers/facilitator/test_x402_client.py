"""The client of facilitators at answers that no honest one gives; the honest ones are in tests/conformance."""

import asyncio
import gzip
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest

from roost.core.sensitive import Sensitive
from roost.drivers.facilitator.contract import ANSWER_LIMIT, FacilitatorFailed, FacilitatorUnavailable, PaymentRequest
from roost.drivers.facilitator.x402_client import X402Facilitator
from tests.chain.payer import payment
from tests.support.wallet import Account

VALID = json.dumps({"isValid": True, "payer": "0x1"}).encode()


@dataclass
class RawServer:
    """Answers every request with bytes; `requests` are the heads that it got."""

    answer: bytes = b""
    hang: bool = False
    requests: list[str] = field(default_factory=list)
    port: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def reply(self, body: bytes, status: str = "200 OK", *headers: str) -> None:
        lines = (f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", "Connection: close", *headers, "", "")
        self.answer = "\r\n".join(lines).encode() + body


@asynccontextmanager
async def raw_server() -> AsyncIterator[RawServer]:
    raw, over = RawServer(), asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        raw.requests.append((await reader.readuntil(b"\r\n\r\n")).decode())
        writer.write(raw.answer)
        if raw.hang:
            await over.wait()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    raw.port = server.sockets[0].getsockname()[1]
    try:
        yield raw
    finally:
        over.set()
        server.close()


@pytest.fixture
async def server() -> AsyncIterator[RawServer]:
    async with raw_server() as raw:
        yield raw


@pytest.fixture
async def paid() -> PaymentRequest:
    return await payment(Account.create(), 2)


@asynccontextmanager
async def client_of(
    url: str, token: Sensitive[str] | None = None, seconds: float = 20
) -> AsyncIterator[X402Facilitator]:
    client = X402Facilitator(url, token, verify_seconds=seconds, settle_seconds=seconds)
    try:
        yield client
    finally:
        await client.close()


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"{}",
        b'{"isValid": "perhaps"}',
        b'{"isValid": true, "payer": 7}',
        b"[" * 50_000,
        VALID + b" " * ANSWER_LIMIT,
    ],
)
async def test_malformed_answers_are_failures(server: RawServer, paid: PaymentRequest, body: bytes) -> None:
    server.reply(body)
    async with client_of(server.url) as client:
        for call in (client.verify, client.settle):
            with pytest.raises(FacilitatorFailed):
                await call(paid)


@pytest.mark.parametrize("status", ["201 Created", "302 Found", "400 Bad Request", "401 Unauthorized", "500 Error"])
async def test_other_statuses_are_failures_without_a_redirect(
    server: RawServer, paid: PaymentRequest, status: str
) -> None:
    server.reply(VALID, status, f"Location: {server.url}/elsewhere")
    async with client_of(server.url) as client:
        with pytest.raises(FacilitatorFailed):
            await client.verify(paid)
    assert len(server.requests) == 1


async def test_an_encoded_answer_is_not_unpacked(server: RawServer, paid: PaymentRequest) -> None:
    server.reply(gzip.compress(VALID + b" " * 10_000_000), "200 OK", "Content-Encoding: gzip")
    async with client_of(server.url) as client:
        with pytest.raises(FacilitatorFailed):
            await client.verify(paid)
    assert "accept-encoding: identity" in server.requests[0].lower()


async def test_long_words_are_cut(server: RawServer, paid: PaymentRequest) -> None:
    server.reply(json.dumps({"isValid": False, "invalidReason": "x" * 10_000}).encode())
    async with client_of(server.url) as client:
        assert (await client.verify(paid)).reason == "x" * 200


@pytest.mark.parametrize("beginning", [b"", b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{"])
async def test_no_answer_in_time(server: RawServer, paid: PaymentRequest, beginning: bytes) -> None:
    server.answer, server.hang = beginning, True
    async with client_of(server.url) as warm:  # loads the SDK, which takes longer than the limit
        warm_up = asyncio.create_task(warm.verify(paid))
        while not server.requests:
            await asyncio.sleep(0.01)
        warm_up.cancel()
    async with client_of(server.url, seconds=0.3) as client:
        with pytest.raises(FacilitatorUnavailable) as caught:
            await client.settle(paid)
    assert caught.value.retry_after == 5


@pytest.mark.parametrize("beginning", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{"])
async def test_a_connection_that_breaks(server: RawServer, paid: PaymentRequest, beginning: bytes) -> None:
    server.answer = beginning
    async with client_of(server.url) as client:
        with pytest.raises(FacilitatorUnavailable):
            await client.settle(paid)


async def test_refused_connection_is_unavailable(paid: PaymentRequest) -> None:
    async with client_of("http://127.0.0.1:1") as client:
        with pytest.raises(FacilitatorUnavailable, match="cannot be reached"):
            await client.verify(paid)


async def test_the_token_is_sent_and_shown_nowhere(server: RawServer, paid: PaymentRequest) -> None:
    server.reply(VALID)
    async with client_of(server.url, Sensitive("a-token-of-a-facilitator")) as client:
        await client.verify(paid)
        assert "a-token" not in repr(vars(client))
        server.reply(b"a-token-of-a-facilitator", "500 Error")
        with pytest.raises(FacilitatorFailed) as caught:
            await client.verify(paid)
    assert "authorization: bearer a-token-of-a-facilitator" in server.requests[0].lower()
    assert "a-token" not in str(caught.value)


async def test_proxies_of_the_environment_are_not_used(
    server: RawServer, paid: PaymentRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
        monkeypatch.setitem(os.environ, name, "http://127.0.0.1:1")
    server.reply(VALID)
    async with client_of(server.url) as client:
        assert (await client.verify(paid)).is_valid
    assert server.requests[0].startswith("POST /verify ")
