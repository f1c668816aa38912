"""`roost engines`: what is installed, what is not there, and failures in the installer's words."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from typer import Exit as Left

from roost import app, config
from roost.cli.server.engines import install_version, show_progress
from roost.core import clock
from roost.drivers.engine.contract import EngineInstallFailed, Progress
from roost.drivers.engine.fake.driver import FakeEngine
from tests.cli.terminal import run, run_on_terminal


class OfflineEngine(FakeEngine):
    def installed(self) -> Sequence[str]:
        return []

    def install(self, version: str, progress: Progress) -> None:
        progress("fetching", None)
        progress("unpacking", 0.5)
        raise EngineInstallFailed("no network\n[red]last line")


@pytest.fixture
def no_engines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without engines."""
    monkeypatch.setenv("ROOST_ENGINES", str(tmp_path / "engines"))
    monkeypatch.setenv("ROOST_DATA", str(tmp_path / "data"))
    return tmp_path


def test_none_is_installed(no_engines: Path) -> None:
    rows = json.loads(run("engines", "list", "-o", "json").stdout)
    assert [row["id"] for row in rows] == ["openclaw", "hermes"]
    assert [row["installed"] for row in rows] == [[], []]
    assert [engine.default_version for engine in app.create_engines(config.load_settings())] == [
        row["default"] for row in rows
    ]
    assert not (no_engines / "data").exists()


def test_the_table_has_a_column_for_what_it_was_asked(no_engines: Path) -> None:
    head = run("engines", "list").stdout.splitlines()[0]
    assert head.split() == ["ID", "LABEL", "DEFAULT", "INSTALLED"]
    assert not (no_engines / "engines").exists()


@pytest.mark.parametrize(
    ("typed", "code"),
    [
        (["install", "unknown"], 5),
        (["install", "../openclaw"], 5),
        (["remove", "openclaw@1.0"], 5),
        (["remove", "openclaw"], 5),
        (["remove", "unknown@1"], 5),
        (["remove"], 2),
    ],
)
def test_unknown_engines_leave_no_files(no_engines: Path, typed: list[str], code: int) -> None:
    answer = run("engines", *typed)
    assert answer.exit_code == code
    assert answer.stdout == ""
    assert list(no_engines.iterdir()) == []


def test_an_install_says_when_it_is_done_and_nothing_when_it_was(
    no_engines: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    engine, settings = FakeEngine(), config.load_settings()
    install_version(settings, engine, "1.1.0")
    assert "Installed Fake 1.1.0." in capsys.readouterr().err
    install_version(settings, engine, "1.1.0")
    assert "Installed" not in capsys.readouterr().err
    assert engine.installed() == ["1.1.0", "1.0.0"]


def test_the_terminal_shows_that_an_installed_version_is_checked(no_engines: Path) -> None:
    code = f"""if 1:
        from roost import config
        from roost.cli.server.engines import install_version, show_progress
        from roost.drivers.engine.fake.driver import FakeEngine
        engine, settings = FakeEngine(), config.load_settings({{"ROOST_DATA": {str(no_engines / "data")!r}}})
        install_version(settings, engine, "1.1.0")
        install_version(settings, engine, "1.1.0")"""
    first, second = run_on_terminal(code).split("Installed Fake 1.1.0.")
    assert "Installing" in first
    assert "Checking Fake 1.1.0" in second
    assert "Installing" not in second


def test_a_log_gets_a_step_now_and_then(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter([0.0, 0.0, 1.0, 6.0, 6.0])
    monkeypatch.setattr(clock, "monotonic_seconds", lambda: next(times))
    with show_progress("Installing Fake 1.0.0") as progress:
        for step in ("first", "second", "third"):
            progress(step, None)
    assert capsys.readouterr().err == "Installing Fake 1.0.0: first\nInstalling Fake 1.0.0: third\n"


@pytest.mark.parametrize(
    ("engine", "version", "told"),
    [(OfflineEngine(), "1.0.0", "no network\n[red]last line"), (FakeEngine(), "9", "no such version")],
)
def test_an_install_that_fails(
    no_engines: Path, capsys: pytest.CaptureFixture[str], engine: FakeEngine, version: str, told: str
) -> None:
    with pytest.raises(Left) as left:
        install_version(config.load_settings(), engine, version)
    assert left.value.exit_code == 1
    assert told in capsys.readouterr().err


def test_an_engine_that_does_not_fit_on_the_disk_is_not_begun(
    no_engines: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = FakeEngine()
    monkeypatch.setattr(FakeEngine, "installed_bytes", 1 << 60)
    with pytest.raises(Left):
        install_version(config.load_settings(), engine, "1.1.0")
    told = " ".join(capsys.readouterr().err.split())
    assert "Fake needs 1,099,511,627,776 MiB of disk" in told
    assert "MiB free" in told
    assert "1.1.0" not in engine.installed()
    install_version(config.load_settings(), engine, "1.0.0")  # it is there
