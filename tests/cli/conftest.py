"""A server that says what a test wants it to say."""

from collections.abc import Iterator

import pytest

from tests.cli import terminal
from tests.cli.terminal import Server


@pytest.fixture(autouse=True)
def _no_other_server(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ROOST_URL", "ROOST_TOKEN", "ROOST_DATA", "ROOST_DOMAIN"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def server() -> Iterator[Server]:
    with terminal.server() as made:
        yield made
