"""A facilitator on a chain where things go wrong: no block in time, no fees, forged payments; money moves once."""

import subprocess
import sys
from dataclasses import replace

import pytest

from roost.core.sensitive import Sensitive
from roost.drivers.facilitator.contract import PaymentRequest
from roost.drivers.facilitator.local import LocalFacilitator
from tests.chain.anvil import FACILITATOR_KEY, NETWORK, OLD_NETWORK, Chain
from tests.chain.payer import SELLER, payment
from tests.support.wallet import Account, LocalAccount

PRICE = 10_000
VERSIONS = pytest.mark.parametrize("version", [1, 2])


@pytest.fixture
def payer(chain: Chain) -> LocalAccount:
    account = Account.create()
    chain.mint(account.address, 2 * PRICE)
    return account


def test_its_libraries_leave_the_recursion_limit() -> None:
    """They raise it beyond the stack, so that deeply nested JSON would end the server."""
    program = (
        "import json, sys\n"
        "from roost.core.sensitive import Sensitive\n"
        "from roost.drivers.facilitator.contract import FacilitatorFailed\n"
        "from roost.drivers.facilitator.local_loader import load_local_facilitator\n"
        "try:\n    load_local_facilitator(Sensitive('no key'), 'http://127.0.0.1:1')\n"
        "except FacilitatorFailed:\n    print('web3' in sys.modules)\n"
        "try:\n    json.loads('[' * 100_000)\n"
        "except RecursionError:\n    print('refused')\n"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout) == (0, "True\nrefused\n"), ended.stderr


def connect(chain: Chain, key: str = FACILITATOR_KEY, receipt_seconds: float = 20) -> LocalFacilitator:
    return LocalFacilitator(Sensitive(key), chain.url, receipt_seconds)


def test_it_serves_its_chain_only(chain: Chain) -> None:
    kinds = connect(chain).describe()["kinds"]
    assert [(kind["x402Version"], kind["network"]) for kind in kinds] == [(2, NETWORK), (1, OLD_NETWORK)]


@VERSIONS
async def test_payment_for_another_network_is_refused(chain: Chain, payer: LocalAccount, version: int) -> None:
    paid = await payment(payer, version, network="eip155:8453" if version == 2 else "base")
    facilitator = connect(chain)
    assert (await facilitator.verify(paid)).is_valid is False
    assert (await facilitator.settle(paid)).is_settled is False


@VERSIONS
async def test_a_transaction_that_is_not_in_a_block_in_time(chain: Chain, payer: LocalAccount, version: int) -> None:
    before, paid = chain.balance(SELLER), await payment(payer, version)
    facilitator = connect(chain, receipt_seconds=0.3)
    chain.mine(automatically=False)
    try:
        pending = await facilitator.settle(paid)
        assert pending.is_settled is False
        assert pending.reason in {"settlement_pending", "transaction_failed"}
    finally:
        chain.mine(automatically=True)
    settled = await connect(chain).settle(paid)  # also after a restart of the facilitator
    assert (settled.is_settled, settled.payer) == (True, payer.address)
    assert (await facilitator.settle(paid)).transaction == settled.transaction
    assert (chain.balance(SELLER), chain.balance(payer.address)) == (before + PRICE, PRICE)


@VERSIONS
async def test_a_forged_payment_with_a_used_nonce_is_no_settlement(
    chain: Chain, payer: LocalAccount, version: int
) -> None:
    facilitator, paid = connect(chain), await payment(payer, version)
    assert (await facilitator.settle(paid)).is_settled
    stranger = await payment(Account.create(), version)
    for signature in (stranger.payload["payload"]["signature"], "0x" + "12" * 100):
        assert (await facilitator.settle(with_signature(paid, signature))).is_settled is False
    other = {**paid.requirements, "payTo": "0x" + "11" * 20}
    assert (await facilitator.settle(replace(paid, requirements=other))).is_settled is False


def with_signature(request: PaymentRequest, signature: str) -> PaymentRequest:
    signed = {**request.payload["payload"], "signature": signature}
    return replace(request, payload={**request.payload, "payload": signed})


async def test_an_account_without_fees_works_once_it_has_some(chain: Chain, payer: LocalAccount) -> None:
    account = Account.create()
    facilitator, paid = connect(chain, account.key.hex()), await payment(payer, 2)
    for _ in range(2):
        assert (await facilitator.settle(paid)).is_settled is False
    chain.call("anvil_setBalance", account.address, hex(10**18))
    assert (await facilitator.settle(paid)).is_settled
