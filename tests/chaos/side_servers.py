"""Servers that a deployment asks, each in a process of its own, because a server is a fork of one without threads.

What they know is in folders, which other processes read and write.
"""

import asyncio
import multiprocessing
import random
import signal
import socket
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path

from roost.drivers.facilitator.contract import FacilitatorFailed, PaymentRequest, PaymentSettlement
from roost.drivers.facilitator.fake import FakeFacilitator
from roost.http.server.facilitator import create_facilitator_server
from roost.http.server.server import open_listener
from tests.conformance.name_server import NameServer

LOST = "f"
"""The first answer to a settlement is lost if the nonce ends with this."""
_CHAIN_SECONDS = 0.05
"""Before and after money moves, at most, so that a kill can come at either time."""


class _FolderNameServer(NameServer):
    """Authority whose TXT records are files."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        self.records = {(file.name, "TXT"): [f'"{file.read_text()}"'] for file in self._folder.iterdir()}
        super().datagram_received(data, addr)


class _UnlimitedBalances(Counter[str]):
    """Balances of accounts that can pay anything."""

    def __missing__(self, key: str) -> int:
        return 1 << 60


class _LedgerFacilitator(FakeFacilitator):
    """Facilitator whose settlements are files: the nonce, with the transaction."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.balances = _UnlimitedBalances()
        self._folder = folder

    async def settle(self, request: PaymentRequest) -> PaymentSettlement:
        nonce = str(request.payload["payload"]["authorization"]["nonce"])
        is_first = not (self._folder / nonce).exists()
        await asyncio.sleep(random.uniform(0, _CHAIN_SECONDS))
        settlement = await super().settle(request)
        if settlement.is_settled:
            (self._folder / nonce).write_text(settlement.transaction)
        await asyncio.sleep(random.uniform(0, _CHAIN_SECONDS))
        if is_first and nonce.endswith(LOST):
            raise FacilitatorFailed
        return settlement


def fork_name_server(folder: Path) -> int:
    """Serve the TXT records of a folder; return the port."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    listener.bind(("127.0.0.1", 0))
    listener.setblocking(False)

    async def serve() -> None:
        loop = asyncio.get_running_loop()
        await loop.create_datagram_endpoint(lambda: _FolderNameServer(folder), sock=listener)
        await asyncio.Event().wait()

    _fork(serve)
    return listener.getsockname()[1]


def fork_facilitator(folder: Path) -> int:
    """Serve a facilitator that writes its settlements into a folder; return the port."""
    listener = open_listener("127.0.0.1", 0)
    _fork(lambda: create_facilitator_server(_LedgerFacilitator(folder), {}, None).run_on([listener], asyncio.Event()))
    return listener.getsockname()[1]


def _fork(serve: Callable[[], Awaitable[None]]) -> None:
    async def run() -> None:
        await serve()

    def begin() -> None:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        asyncio.run(run())

    multiprocessing.get_context("fork").Process(target=begin, daemon=True).start()
