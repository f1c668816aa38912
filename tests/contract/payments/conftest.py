"""A server with a facilitator, and a shop for each test."""

from collections.abc import AsyncIterator

import pytest

from tests.contract.backing import Backing
from tests.contract.payments.paid_content import Bank, PaidContent, open_bank, open_shop
from tests.support.server import RunningServer, running


@pytest.fixture(scope="module")
async def opened_bank() -> AsyncIterator[Bank]:
    async with open_bank() as bank:
        yield bank


@pytest.fixture
def bank(opened_bank: Bank) -> Bank:
    """Return the facilitator of the server, honest and without memory of its calls."""
    opened_bank.reset()
    return opened_bank


@pytest.fixture(scope="module")
async def server(backing: Backing, opened_bank: Bank) -> AsyncIterator[RunningServer]:
    async with running(backing.folder, ROOST_FACILITATOR_URL=opened_bank.url, **backing.environment) as server:
        yield server


@pytest.fixture
async def shop(server: RunningServer, tenant: str) -> PaidContent:
    return await open_shop(server, tenant)
