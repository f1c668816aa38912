"""A virtual environment that works at its path in a container, made without `ensurepip` and filled by the running pip.

A container sees the system's `/usr`, so the system's Python is preferred; otherwise the Python that runs Roost is
mounted at its own path. The environment finds itself through `pyvenv.cfg`, so it may move; scripts with absolute
first lines may not, and are not kept.
"""

import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from roost.drivers.engine.contract import EngineInstallFailed, Progress
from roost.drivers.engine.install_staging import InstallStaging

_SYSTEM = Path("/usr")
_USABLE = "import sys, ctypes, sqlite3, ssl, venv; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))"


def interpreter() -> Path:
    """Return the Python of containers: the system's if it is complete and of a right version, else the running one."""
    running = Path(sys.base_prefix) / "bin" / f"python{sys.version_info.major}.{sys.version_info.minor}"
    for candidate in (_SYSTEM / "bin/python3", running):
        command = [str(candidate), "-I", "-c", _USABLE]
        if candidate.exists() and not subprocess.run(command, check=False, capture_output=True).returncode:
            return candidate.resolve()
    raise EngineInstallFailed("Hermes needs Python 3.11, 3.12 or 3.13, and neither the system's nor Roost's own is one")


def make(staging: InstallStaging, requirements: Sequence[str], expected: int, progress: Progress) -> None:
    """Fill the staging folder with an environment that holds `requirements`. Raises EngineInstallFailed."""
    path = staging.path
    venv = [str(interpreter()), "-I", "-m", "venv", "--without-pip", "--symlinks", str(path)]
    staging.run(venv, lambda _: None)
    pip = [sys.executable, "-m", "pip", "--python", str(path / "bin/python3"), "--disable-pip-version-check"]
    install = ["install", "--no-input", "--no-user", "--no-warn-script-location", *requirements]
    staging.run([*pip, *install], _counter(expected, progress))
    for script in (path / "bin").iterdir():
        if not script.name.startswith("python"):
            script.unlink()


def usable(path: Path) -> bool:
    """Whether the Python it was made with is still there: an upgrade of the system may have replaced it."""
    return (path / "bin/python3").exists()


def folders(path: Path, target: str) -> Mapping[str, Path]:
    """Return the environment at `target`, and its Python at its own path unless containers have that anyway."""
    prefix = (path / "bin/python3").resolve().parent.parent
    return {target: path} if prefix.is_relative_to(_SYSTEM) else {target: path, str(prefix): prefix}


def _counter(expected: int, progress: Progress) -> Callable[[str], None]:
    """Turns pip's output into progress: most of the time goes into fetching, the rest is unpacking."""
    found = 0

    def on_line(line: str) -> None:
        nonlocal found
        if line.startswith("Collecting "):
            found += 1
            progress(f"Fetching {line.split()[1][:60]}", min(0.8 * found / expected, 0.8))
        elif line.startswith("Installing collected packages"):
            progress("Unpacking", 0.8)

    return on_line
