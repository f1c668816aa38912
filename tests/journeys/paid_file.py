"""A file that a server sells, and a facilitator that settles for it, each a process as a person starts it."""

import os
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2

from tests.chain.anvil import FACILITATOR_KEY, OLD_NETWORK, TOKEN, Chain
from tests.chain.payer import SELLER, encode, pay
from tests.journeys.server_process import ROOST, ServerProcess, until
from tests.support.wallet import LocalAccount

PRICE = 10_000
CONTENT = b"a paid article " * 20_000


@contextmanager
def facilitator_process(chain: Chain, folder: Path, *flags: str, **environment: str) -> Iterator[str]:
    """Run `roost facilitator` on a free port; give its URL."""
    key, output = folder / "facilitator.key", folder / "facilitator.out"
    key.write_text(FACILITATOR_KEY)
    command = [*ROOST, "facilitator", "--rpc", chain.url, "--port", "0", "--data", str(folder / "none"), *flags]
    variables = {**os.environ, "ROOST_FACILITATOR_KEY_FILE": str(key), **environment}
    with output.open("wb") as file:
        process = subprocess.Popen(command, stdout=file, stderr=file, env=variables)
    try:
        until(lambda: process.poll() is not None or re.search(r"http://\S+\n", output.read_text()))
        (url,) = re.findall(r"http://\S+", output.read_text())
        yield url
    finally:
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0, output.read_text()


@dataclass
class PaidFile:
    """A file that a server sells; host: the name of its gateway."""

    server: ServerProcess
    host: str
    cid: str

    @property
    def path(self) -> str:
        return f"/x402/cid/{self.cid}"

    @property
    def visitor(self) -> dict[str, Any]:
        return {"base_url": self.server.url, "headers": {"Host": self.host}, "timeout": 60, "trust_env": False}

    def get(self, payment: dict[str, Any] | None = None) -> httpx2.Response:
        headers = {} if payment is None else {"X-PAYMENT": encode(payment)}
        with httpx2.Client(**self.visitor) as client:
            return client.get(self.path, headers=headers)

    async def pay(self, payer: LocalAccount) -> dict[str, Any]:
        return await pay(payer, self.get().json()["accepts"][0])


def upload_paid_file(server: ServerProcess, content: bytes = CONTENT) -> PaidFile:
    """Upload a private file and put a price on it."""
    port = int(server.url.rpartition(":")[2])
    with server.client() as api:
        upload = {"Host": f"uploads.localhost:{port}"}
        sent = api.post("/v3/files", headers=upload, data={"network": "private"}, files={"file": ("a.txt", content)})
        cid = sent.raise_for_status().json()["data"]["cid"]
        api.headers["Host"] = f"api.localhost:{port}"
        price = {"asset": TOKEN, "pay_to": SELLER, "network": OLD_NETWORK, "amount": str(PRICE)}
        body = {"name": "articles", "payment_requirements": [price]}
        made = api.post("/v3/x402/payment_instructions", json=body).raise_for_status().json()["data"]
        api.put(f"/v3/x402/payment_instructions/{made['id']}/cids/{cid}").raise_for_status()
        gateway = api.get("/v3/gateways").raise_for_status().json()["data"]["rows"][0]["domain"]
    return PaidFile(server, f"{gateway}.gateways.localhost:{port}", cid)
