"""Facilitators under test, each with accounts that have tokens."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from roost.core.sensitive import Sensitive
from roost.drivers.facilitator.contract import Facilitator
from roost.drivers.facilitator.fake import FakeFacilitator
from roost.drivers.facilitator.local_loader import load_local_facilitator
from roost.drivers.facilitator.x402_client import X402Facilitator
from roost.http.server.facilitator import create_facilitator_server
from roost.http.server.server import open_listener
from tests.chain.anvil import FACILITATOR_KEY, Chain

TOKEN = Sensitive("a-token-of-a-facilitator")


class FacilitatorEnv(ABC):
    """A facilitator, and the tokens of accounts that it moves."""

    facilitator: Facilitator

    @abstractmethod
    def mint(self, address: str, amount: int) -> None:
        """Give an account tokens."""

    @abstractmethod
    def balance(self, address: str) -> int:
        """Return the tokens of an account."""


class FakeFacilitatorEnv(FacilitatorEnv):
    def __init__(self) -> None:
        self.facilitator = self._fake = FakeFacilitator()

    def mint(self, address: str, amount: int) -> None:
        self._fake.balances[address.lower()] += amount

    def balance(self, address: str) -> int:
        return self._fake.balances[address.lower()]


class ChainFacilitatorEnv(FacilitatorEnv):
    def __init__(self, facilitator: Facilitator, chain: Chain) -> None:
        self.facilitator = facilitator
        self._chain = chain

    def mint(self, address: str, amount: int) -> None:
        self._chain.mint(address, amount)

    def balance(self, address: str) -> int:
        return self._chain.balance(address)


@asynccontextmanager
async def served_facilitator(
    facilitator: Facilitator, token: Sensitive[str] | None = None, supported: dict[str, object] | None = None
) -> AsyncIterator[str]:
    """Serve a facilitator over HTTP; give its URL."""
    listener = open_listener("127.0.0.1", 0)
    stop = asyncio.Event()
    server = create_facilitator_server(facilitator, supported or {}, token)
    serving = asyncio.create_task(server.run_on([listener], stop))
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        stop.set()
        await serving


@asynccontextmanager
async def chain_facilitator(chain: Chain) -> AsyncIterator[FacilitatorEnv]:
    """Give a client of a facilitator on a chain, both over HTTP."""
    local = load_local_facilitator(Sensitive(FACILITATOR_KEY), chain.url)
    async with served_facilitator(local, TOKEN) as url:
        client = X402Facilitator(url, TOKEN)
        try:
            yield ChainFacilitatorEnv(client, chain)
        finally:
            await client.close()
