import os
import re
import subprocess
import zipfile
from pathlib import Path

import pytest

from roost.drivers.engine.contract import EngineInstallFailed
from roost.drivers.engine.hermes import driver, virtual_environment
from roost.drivers.engine.version_folder import InstallStaging, VersionFolder

LOCK = Path(driver.__file__).with_name("requirements.txt").read_text()


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    """A minimal package with a module and a command."""
    path = tmp_path / "roostling-1.0-py3-none-any.whl"
    info = "roostling-1.0.dist-info"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("roostling.py", "import sys\ndef main():\n    print(sys.prefix)\n")
        file.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: roostling\nVersion: 1.0\n")
        file.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        file.writestr(f"{info}/entry_points.txt", "[console_scripts]\nroostling = roostling:main\n")
        file.writestr(f"{info}/RECORD", "")
    return path


@pytest.mark.parametrize("uv_works", [True, False])
def test_a_moved_environment_works(
    tmp_path: Path, wheel: Path, uv_works: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """uv made it, or pip where uv fails; either compiles the modules."""
    progress: list[tuple[str, float | None]] = []
    if not uv_works:
        monkeypatch.setattr(virtual_environment, "uv_command", lambda _: ["/bin/false"])

    def fill(staging: InstallStaging) -> None:
        virtual_environment.create_environment(
            staging, ["--no-index", str(wheel)], 1, lambda text, done: progress.append((text, done))
        )

    path = VersionFolder(tmp_path / "thing").put("1.0", fill)
    elsewhere = path.rename(tmp_path / "elsewhere")
    output = subprocess.check_output([elsewhere / "bin/python3", "-m", "roostling"], text=True)
    assert output == ""
    command = [elsewhere / "bin/python3", "-c", "import roostling; roostling.main()"]
    assert subprocess.check_output(command, text=True).strip() == str(elsewhere)
    assert {entry.name for entry in (elsewhere / "bin").iterdir()} <= {
        "python",
        "python3",
        "python3.11",
        "python3.12",
        "python3.13",
    }
    assert progress[-1] == (("Installing packages", None) if uv_works else ("Unpacking", 0.8))
    assert list(elsewhere.rglob("roostling.*.pyc"))
    assert virtual_environment.has_interpreter(elsewhere)


def test_a_failed_installation_is_reported(tmp_path: Path) -> None:
    def fill(staging: InstallStaging) -> None:
        virtual_environment.create_environment(
            staging, ["--no-index", "roost-no-such-package"], 1, lambda _text, _done: None
        )

    with pytest.raises(EngineInstallFailed, match="roost-no-such-package"):
        VersionFolder(tmp_path / "thing").put("1.0", fill)


def test_the_systems_python_needs_no_folder_and_another_does(tmp_path: Path) -> None:
    for name, python in (("system", "/usr/bin/python3.11"), ("own", str(tmp_path / "opt/bin/python3.11"))):
        (tmp_path / name / "bin").mkdir(parents=True)
        (tmp_path / name / "bin/python3").symlink_to(python)
    assert virtual_environment.container_folders(tmp_path / "system") == {
        virtual_environment.TARGET: tmp_path / "system"
    }
    prefix = (tmp_path / "opt").resolve()
    own = tmp_path / "own"
    assert virtual_environment.container_folders(own) == {virtual_environment.TARGET: own, str(prefix): prefix}


def test_an_environment_can_lose_its_interpreter(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/python3").symlink_to(tmp_path / "gone")
    assert not virtual_environment.has_interpreter(tmp_path)


def test_the_interpreter_is_visible_in_containers_and_supported_by_hermes() -> None:
    python = virtual_environment.find_interpreter()
    assert os.access(python, os.X_OK)
    assert not python.is_symlink()
    version = subprocess.check_output([python, "-c", "import sys; print(*sys.version_info[:2])"], text=True).split()
    assert ("3", "11") <= tuple(version) <= ("3", "13")


def test_every_package_of_the_lock_is_pinned_and_has_a_checksum() -> None:
    entries = re.split(r"\n(?=\S)", re.sub(r"(?m)^ *#.*\n", "", LOCK).strip())
    assert any(entry.startswith(f"hermes-agent=={driver.Hermes.default_version} ") for entry in entries)
    assert [entry for entry in entries if "==" not in entry.split()[0] or "--hash=sha256:" not in entry] == []
