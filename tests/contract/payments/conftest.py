"""A server with a facilitator, and paid content for each test."""

from collections.abc import AsyncIterator

import pytest

from tests.contract.backing import Backing
from tests.contract.payments.paid_content import (
    FacilitatorServer,
    PaidContent,
    create_paid_content,
    serve_fake_facilitator,
)
from tests.support.server import RunningServer, running


@pytest.fixture(scope="module")
async def running_facilitator_server() -> AsyncIterator[FacilitatorServer]:
    async with serve_fake_facilitator() as facilitator_server:
        yield facilitator_server


@pytest.fixture
def facilitator_server(running_facilitator_server: FacilitatorServer) -> FacilitatorServer:
    """Return the facilitator of the server, honest and without memory of its calls."""
    running_facilitator_server.reset()
    return running_facilitator_server


@pytest.fixture(scope="module")
async def server(backing: Backing, running_facilitator_server: FacilitatorServer) -> AsyncIterator[RunningServer]:
    async with running(
        backing.folder, ROOST_FACILITATOR_URL=running_facilitator_server.url, **backing.environment
    ) as server:
        yield server


@pytest.fixture
async def paid_content(server: RunningServer, tenant: str) -> PaidContent:
    return await create_paid_content(server, tenant)
