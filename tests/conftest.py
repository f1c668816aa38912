"""Fixtures of all tests."""

import signal

import pytest
from hypothesis import settings

pytest_plugins = ["tests.databases"]

settings.register_profile("any-machine", deadline=None)  # other programs may keep the machine busy
settings.load_profile("any-machine")

if (
    signal.getsignal(signal.SIGINT) is signal.SIG_IGN
):  # so in a shell's background; programs that tests start inherit it
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"
