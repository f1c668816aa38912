"""Fixtures: a scripted server, and no server in the environment."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli import terminal
from tests.cli.terminal import FakeServer


@pytest.fixture(autouse=True)
def _no_other_server(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    for name in ("ROOST_URL", "ROOST_TOKEN", "ROOST_CONTEXT", "ROOST_DATA", "ROOST_DOMAIN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.getbasetemp() / "no-config"))


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the file of contexts, in a home of this test, from which a data folder would be `.roost`."""
    (tmp_path / "home").mkdir()
    monkeypatch.chdir(tmp_path / "home")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return tmp_path / "config" / "roost" / "config"


@pytest.fixture
def server() -> Iterator[FakeServer]:
    with terminal.fake_server() as made:
        yield made
