"""Fixtures: a scripted server, and no server in the environment."""

from collections.abc import Iterator

import pytest

from tests.cli import terminal
from tests.cli.terminal import FakeServer


@pytest.fixture(autouse=True)
def _no_other_server(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ROOST_URL", "ROOST_TOKEN", "ROOST_DATA", "ROOST_DOMAIN"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def server() -> Iterator[FakeServer]:
    with terminal.fake_server() as made:
        yield made
