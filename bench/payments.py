"""Paid GETs of 1 MiB, compared with free ones of the same content, on a chain and a facilitator of this machine.

The chain mines each transaction at once; a public one adds its own time.
"""

import asyncio
import os
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import httpx2 as httpx

from bench.row import Row
from bench.timing import median_ms
from tests.chain.anvil import Chain, anvil_chain
from tests.chain.payer import encode
from tests.journeys.paid_file import PaidFile, facilitator_process, upload_paid_file
from tests.journeys.server_process import ServerProcess, up
from tests.support.wallet import Account, LocalAccount

_SIZE, _PRICE = 1024**2, 10_000
_GETS, _REPLAYS = 40, 50
_SHORTFALL = "The facilitator asks the chain, and settles each payment by a transaction, before the file is sent."


def run(folder: Path) -> Iterator[Row]:
    chain_folder = folder / "chain"
    chain_folder.mkdir()
    with (
        anvil_chain(chain_folder) as chain,
        facilitator_process(chain, folder) as url,
        up(folder / "data", "--no-first-agent", ROOST_FACILITATOR_URL=url) as server,
    ):
        content = os.urandom(_SIZE)
        paid_file, free = upload_paid_file(server, content), _upload_public(server, content)
        payer = Account.create()
        chain.mint(payer.address, (_GETS + 10) * _PRICE)
        with httpx.Client(**paid_file.visitor) as client:
            unpaid = median_ms(lambda: client.get(free).raise_for_status(), 100, warm=10)
            paid = _time_paid_gets(client, paid_file, payer)
        yield Row("payments: paid GET of 1 MiB, p50", paid, "ms", "free", unpaid, "<= 10 x", shortfall=_SHORTFALL)
        replayed, served = asyncio.run(_replay(paid_file, payer, chain))
    yield Row(f"payments: served of {_REPLAYS} uses of one at once", served, "", goal="= 1")
    yield Row(f"payments: {_REPLAYS} uses of one at once", replayed, "ms")


def _time_paid_gets(client: httpx.Client, paid_file: PaidFile, payer: LocalAccount) -> float:
    """Return the median duration of paid GETs; signing is the payer's time."""
    payments = [encode(asyncio.run(paid_file.pay(payer))) for _ in range(_GETS)]
    times: list[float] = []
    for payment in payments:
        began = time.perf_counter()
        answer = client.get(paid_file.path, headers={"X-PAYMENT": payment}).raise_for_status()
        times.append((time.perf_counter() - began) * 1000)
        assert len(answer.content) == _SIZE
    return median(times)


async def _replay(paid_file: PaidFile, payer: LocalAccount, chain: Chain) -> tuple[float, int]:
    """Return the milliseconds of many uses of one payment at once, and how many of them were served."""
    headers, before = {"X-PAYMENT": encode(await paid_file.pay(payer))}, chain.balance(payer.address)
    async with httpx.AsyncClient(**paid_file.visitor) as client:
        began = time.perf_counter()
        answers = await asyncio.gather(*(client.get(paid_file.path, headers=headers) for _ in range(_REPLAYS)))
        duration = (time.perf_counter() - began) * 1000
    assert chain.balance(payer.address) == before - _PRICE
    return duration, sum(answer.status_code == 200 for answer in answers)


def _upload_public(server: ServerProcess, content: bytes) -> str:
    host = {"Host": f"uploads.localhost:{server.url.rpartition(':')[2]}"}
    with server.client() as api:
        sent = api.post("/v3/files", headers=host, data={"network": "public"}, files={"file": ("b", content)})
    return f"/ipfs/{sent.raise_for_status().json()['data']['cid']}"
