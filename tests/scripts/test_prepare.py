"""What `make up` prepares before the first start and beside it: the order of its parts, and what a failure stops."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import prepare
import pytest


def recorder(folder: Path, name: str, code: int = 0) -> tuple[str, ...]:
    """Return a command that writes its arguments to a file and exits with a code."""
    program = f"import sys; open({str(folder / name)!r}, 'a').write(' '.join(sys.argv[1:]) + '\\n'); sys.exit({code})"
    return (sys.executable, "-c", program)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(prepare, "BUILT", tmp_path / "built")
    monkeypatch.setattr(prepare, "INSTALL", recorder(tmp_path, "installed"))
    monkeypatch.setattr(prepare, "REST", recorder(tmp_path, "rest"))
    monkeypatch.setattr(prepare, "PAGES", (recorder(tmp_path, "pages"),))
    monkeypatch.setattr(prepare, "LIST", (sys.executable, "-c", 'print(\'[{"status": "running"}]\')'))
    monkeypatch.setattr(prepare, "PAUSE_SECONDS", 0)
    return tmp_path


def test_the_first_start_needs_little_and_leaves_the_rest(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[Any] = []
    popen: Any = subprocess.Popen
    monkeypatch.setattr(subprocess, "Popen", lambda *args, **options: started.append(popen(*args, **options)))
    monkeypatch.setattr(prepare, "run", lambda command: popen(command).wait())
    assert prepare.main("start") == 0
    assert started[0].wait(30) == 0
    assert (folder / "installed").read_text() == "--minimal openclaw\n"
    assert (folder / "rest").exists()
    assert not (folder / "pages").exists()


def test_nothing_is_left_to_the_background_when_the_start_fails(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prepare, "INSTALL", recorder(folder, "installed", code=3))
    assert prepare.main("start") == 3
    assert not (folder / "rest").exists()


@pytest.mark.parametrize("scope", ["rest", "all"])
def test_all_is_prepared_in_the_end(folder: Path, scope: str) -> None:
    assert prepare.main(scope) == 0
    assert sorted((folder / "installed").read_text().split()) == ["hermes", "openclaw"]
    assert (folder / "pages").exists()


def test_a_start_with_pages_prepares_what_is_missing_first(folder: Path) -> None:
    (folder / "built").mkdir()
    (folder / "built" / "index.html").touch()
    assert prepare.main("start") == 0
    assert sorted((folder / "installed").read_text().split()) == ["hermes", "openclaw"]
    assert not (folder / "rest").exists()


@pytest.mark.parametrize("failing", ["INSTALL", "PAGES"])
def test_a_failure_of_the_background_is_its_exit_code(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], failing: str
) -> None:
    command = recorder(folder, "failed", code=4)
    monkeypatch.setattr(prepare, failing, command if failing == "INSTALL" else (command,))
    assert prepare.main("rest") == 4
    assert "Not everything is prepared; the next start tries again." in capfd.readouterr().out
