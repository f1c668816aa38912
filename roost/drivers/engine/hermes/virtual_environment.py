"""A virtual environment that works at its path in a container, created without `ensurepip` and filled by our own uv.

Containers have the system's `/usr`, so the system's Python is preferred; otherwise the Python that runs Roost is
mounted at its own path. `pyvenv.cfg` makes the environment relocatable, except for scripts with an absolute shebang,
which are deleted.
"""

import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from roost.drivers.engine.contract import EngineInstallFailed, Progress
from roost.drivers.engine.package_installer import uv_command
from roost.drivers.engine.version_folder import InstallStaging

TARGET = "/engine/hermes"
PYTHON = f"{TARGET}/bin/python3"
"""Folder of the environment in a container, and its interpreter."""
_SYSTEM = Path("/usr")
_VERSION_CHECK = "import sys, ctypes, sqlite3, ssl, venv; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))"


def find_interpreter() -> Path:
    """Return the Python for containers: the system's if complete and supported, else the running one.

    Raises EngineInstallFailed.
    """
    running = Path(sys.base_prefix) / "bin" / f"python{sys.version_info.major}.{sys.version_info.minor}"
    for candidate in (_SYSTEM / "bin/python3", running):
        command = [str(candidate), "-I", "-c", _VERSION_CHECK]
        if candidate.exists() and not subprocess.run(command, check=False, capture_output=True).returncode:
            return candidate.resolve()
    raise EngineInstallFailed(
        "Hermes needs Python 3.11, 3.12 or 3.13, but neither the system's nor Roost's own is usable"
    )


def create_environment(staging: InstallStaging, requirements: Sequence[str], expected: int, progress: Progress) -> None:
    """Install `requirements` (about `expected` packages) in a new environment. Raises EngineInstallFailed."""
    path = staging.path
    venv = [str(find_interpreter()), "-I", "-m", "venv", "--without-pip", "--symlinks", str(path)]
    staging.run(venv, lambda _: None)
    options = ["--python", str(path / "bin/python3"), *requirements]
    # Compiled, because containers cannot write there; without a cache, whose files another umask may have made.
    uv = [*uv_command(Path(sys.executable)), "--compile-bytecode", "--no-cache", *options]
    try:
        progress("Installing packages", None)
        staging.run(uv, lambda _: None)
    except EngineInstallFailed:  # only pip knows all that pip can be configured with
        pip = [sys.executable, "-m", "pip", *options[:2], "--disable-pip-version-check", "install", "--no-input"]
        staging.run([*pip, "--no-user", "--no-warn-script-location", *requirements], _counter(expected, progress))
    for script in (path / "bin").iterdir():
        if not script.name.startswith("python"):
            script.unlink()


def has_interpreter(path: Path) -> bool:
    """Return whether the environment's Python still exists; an upgrade of the system can remove it."""
    return (path / "bin/python3").exists()


def container_folders(path: Path) -> Mapping[str, Path]:
    """Return the folders to mount: the environment at TARGET, and its Python's unless that is in `/usr`."""
    prefix = (path / "bin/python3").resolve().parent.parent
    return {TARGET: path} if prefix.is_relative_to(_SYSTEM) else {TARGET: path, str(prefix): prefix}


def _counter(expected: int, progress: Progress) -> Callable[[str], None]:
    """Return a callback that derives progress from pip's output; fetching takes most of the time."""
    fetched = 0

    def on_line(line: str) -> None:
        nonlocal fetched
        if line.startswith("Collecting "):
            fetched += 1
            progress(f"Fetching {line.split()[1][:60]}", min(0.8 * fetched / expected, 0.8))
        elif line.startswith("Installing collected packages"):
            progress("Unpacking", 0.8)

    return on_line
