"""A chain of its own on loopback (Anvil) with a token at the address of USDC on Base Sepolia, and wallets that pay."""

import json
import os
import re
import socket
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.journeys.server_process import until
from tests.support import node
from tests.support.acme import wait_for_port

FOLDER = Path(__file__).parent
CHAIN_ID = 84532
NETWORK, OLD_NETWORK = f"eip155:{CHAIN_ID}", "base-sepolia"
TOKEN = "0x036CbD53842c5426634e7929541eC2318f3dCF7e"
TOKEN_NAME, TOKEN_VERSION = "USDC", "2"
FACILITATOR_KEY = "0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d"
"""The second of Anvil's public keys, whose account has Ether."""
_MINTER = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"
_MINT, _BALANCE = "40c10f19", "70a08231"
_PROGRAMS = "@foundry-rs/*/bin/anvil"


@dataclass(frozen=True)
class Chain:
    """The chain at `url`."""

    url: str

    def call(self, method: str, *parameters: Any) -> Any:
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": parameters}).encode()
        request = urllib.request.Request(self.url, body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=10) as answer:
            reply = json.load(answer)
        assert "error" not in reply, reply
        return reply["result"]

    def mint(self, address: str, amount: int) -> None:
        """Give an account tokens."""
        data = f"0x{_MINT}{_word(address)}{amount:064x}"
        sent = self.call("eth_sendTransaction", {"from": _MINTER, "to": TOKEN, "data": data})
        until(lambda: self.call("eth_getTransactionReceipt", sent), deadline=20, every=0.01)

    def balance(self, address: str) -> int:
        """Return the tokens of an account."""
        return int(self._read(f"0x{_BALANCE}{_word(address)}"), 16)

    def mine(self, *, automatically: bool) -> None:
        """Mine transactions as they come, or leave them pending."""
        self.call("evm_setAutomine", automatically)
        if automatically:
            self.call("evm_mine")

    def _read(self, data: str) -> str:
        return self.call("eth_call", {"to": TOKEN, "data": data}, "latest")


@contextmanager
def anvil_chain(folder: Path) -> Iterator[Chain]:
    """Run a chain. Skips the test if Node is not installed."""
    packages = node.installed(FOLDER)
    program = next(iter(sorted(packages.glob(_PROGRAMS))))
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    arguments = ["--chain-id", str(CHAIN_ID), "--host", "127.0.0.1", "--port", str(port), "--silent"]
    with (folder / "anvil.log").open("wb") as output:
        process = subprocess.Popen([program, *arguments], stdout=output, stderr=output, env={"HOME": str(folder)})
    try:
        wait_for_port(port)
        chain = Chain(f"http://127.0.0.1:{port}")
        chain.call("anvil_setCode", TOKEN, f"0x{_compile_token(packages, folder)}")
        yield chain
    finally:
        process.terminate()
        process.wait(10)


def _compile_token(packages: Path, folder: Path) -> str:
    script = folder / "compile.mjs"
    script.write_bytes((FOLDER / "compile.mjs").read_bytes())
    (folder / "node_modules").symlink_to(packages)
    environment = {"SOURCE": str(FOLDER / "Token.sol"), "PATH": os.environ["PATH"], "HOME": str(folder)}
    done = subprocess.run(
        ["node", script.name], cwd=folder, env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert re.fullmatch("[0-9a-f]+", done.stdout), done.stderr
    return done.stdout


def _word(address: str) -> str:
    return address.removeprefix("0x").lower().rjust(64, "0")
