"""Payments on a chain of its own: `roost up`, `roost facilitator`, and clients that pay by the SDK of x402."""

import asyncio
import re
import signal
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from x402 import x402Client
from x402.http.clients import x402HttpxClient
from x402.http.utils import decode_payment_response_header
from x402.mechanisms.evm.exact import register_exact_evm_client

from tests.chain.anvil import FACILITATOR_KEY, NETWORK, TOKEN, Chain
from tests.chain.payer import SELLER, encode, pay
from tests.journeys.server_process import ROOST, Up, until, up
from tests.wallet import Account, LocalAccount

PRICE = 10_000
CONTENT = b"a paid article " * 20_000


@contextmanager
def facilitator_process(chain: Chain, folder: Path) -> Iterator[str]:
    """Run `roost facilitator` on a free port; give its URL."""
    key = folder / "facilitator.key"
    key.write_text(FACILITATOR_KEY)
    command = [*ROOST, "facilitator", "--rpc", chain.url, "--port", "0", "--data", str(folder / "none")]
    output = folder / "facilitator.out"
    with output.open("wb") as file:
        process = subprocess.Popen(command, stdout=file, stderr=file, env=environment(ROOST_FACILITATOR_KEY_FILE=str(key)))
    try:
        found = until(lambda: process.poll() is not None or re.search(r"http://\S+", output.read_text()))
        assert not isinstance(found, bool), output.read_text()
        yield found[0]
    finally:
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0
