"""What every test shares."""

import pytest

pytest_plugins = ["tests.databases"]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
