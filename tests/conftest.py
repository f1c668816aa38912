"""What every test shares."""

import pytest
from hypothesis import settings

pytest_plugins = ["tests.databases"]

settings.register_profile("any-machine", deadline=None)  # others may be busy on it
settings.load_profile("any-machine")


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"
