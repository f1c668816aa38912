"""What `make up` prepares before the first start and beside it: the order of its parts, and what a failure stops."""

import signal
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
    monkeypatch.setattr(prepare, "BACKGROUND", recorder(tmp_path, "background"))
    monkeypatch.setattr(prepare, "AUTOGROUP", tmp_path / "autogroup")
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
    assert (folder / "background").exists()
    assert not (folder / "pages").exists()


def test_nothing_is_left_to_the_background_when_the_start_fails(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prepare, "INSTALL", recorder(folder, "installed", code=3))
    assert prepare.main("start") == 3
    assert not (folder / "background").exists()


def test_the_background_has_a_session_of_its_own(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = f"import os; open({str(folder / 'session')!r}, 'w').write(str(os.getsid(0) == os.getpid())); os._exit(3)"
    monkeypatch.setattr(prepare, "REST", (sys.executable, "-c", program))
    assert prepare.main("background") == 3
    assert (folder / "session").read_text() == "True"


def test_the_background_ends_with_ctrl_c() -> None:
    command = ("sh", "-c", "sh -c 'echo started; exec sleep 100'; exit 5")
    handled = "signal.signal(signal.SIGINT, signal.default_int_handler)"  # a shell's background ignores it
    program = f"import signal, sys, prepare; {handled}; sys.exit(prepare.run_apart({command}))"
    folder = Path(prepare.__file__).parent
    with subprocess.Popen([sys.executable, "-c", program], cwd=folder, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "started\n"
        process.send_signal(signal.SIGINT)
        assert process.stdout.read() == "", "the pipe ends with the last of its programs"
        assert process.wait(30) != 0


@pytest.mark.parametrize("exists", [True, False])
def test_the_background_yields_to_other_sessions(folder: Path, exists: bool) -> None:
    if exists:
        (folder / "autogroup").touch()
    assert prepare.main("rest") == 0
    assert (folder / "autogroup").exists() == exists
    assert not exists or (folder / "autogroup").read_text() == "19"


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
    assert not (folder / "background").exists()


@pytest.mark.parametrize("failing", ["INSTALL", "PAGES"])
def test_a_failure_of_the_background_is_its_exit_code(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], failing: str
) -> None:
    command = recorder(folder, "failed", code=4)
    monkeypatch.setattr(prepare, failing, command if failing == "INSTALL" else (command,))
    assert prepare.main("rest") == 4
    assert "Not everything is prepared; the next start tries again." in capfd.readouterr().out
