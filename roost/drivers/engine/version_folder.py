"""Folders of installed software, one per version, shared by all servers of the machine, and the run of installers.

A version is created in a staging folder and renamed when it is complete. A lock prevents concurrent installations. The
installer's processes (pip, npm) inherit it, so that others wait for an installer that outlives its killed server. All
files are world-readable, whatever the server's umask is, because agents run as other users.

Progress comes from the lines of an installer's output; the last ones are kept for the error.
"""

import fcntl
import os
import re
import shutil
import subprocess
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from roost.core.machine.network_advice import advise_network
from roost.drivers.engine.contract import EngineInstallFailed, EngineNotInstalled, InvalidVersionName

_VERSION = re.compile(r"[0-9][0-9A-Za-z.+-]{0,63}")
_TIMEOUT_SECONDS = 1800.0
_LINE_BYTES = 4096
_TAIL_LINES = 15

OnLine = Callable[[str], None]


@dataclass(frozen=True)
class InstallStaging:
    """Temporary folder of an installation. lock: descriptor of the version folder's lock, inherited by installers."""

    path: Path
    lock: int

    def run(self, argv: Sequence[str], on_line: OnLine) -> None:
        """Run an installer. Raises EngineInstallFailed with its last lines."""
        tail: deque[str] = deque(maxlen=_TAIL_LINES)
        process = self._spawn(argv)
        alarm = threading.Timer(_TIMEOUT_SECONDS, process.kill)
        alarm.daemon = True
        alarm.start()
        try:
            code = _follow(process, tail, on_line)
        except BaseException:
            process.kill()
            process.wait()
            raise
        finally:
            alarm.cancel()
        if code:
            raise _install_failed(f"{Path(argv[0]).name} exited with {code}", tail)

    def _spawn(self, argv: Sequence[str]) -> subprocess.Popen[bytes]:
        try:
            return subprocess.Popen(
                argv,
                cwd=self.path,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                pass_fds=(self.lock,),
                umask=0o022,
            )
        except OSError as error:
            raise EngineInstallFailed(f"The installer did not start: {error}") from error


def query_registry(argv: Sequence[str]) -> str:
    """Return the standard output of a registry client. Raises EngineInstallFailed."""
    try:
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise EngineInstallFailed(f"The registry could not be queried: {error}") from error
    if done.returncode:
        last = done.stderr.decode(errors="replace").strip().splitlines()[-5:]
        raise _install_failed("The registry could not be queried", last)
    return done.stdout.decode(errors="replace")


def check_version(version: str) -> str:
    """Return the version if it is safe as a folder name and as an argument. Raises InvalidVersionName."""
    if not _VERSION.fullmatch(version):
        raise InvalidVersionName
    return version


def is_at_least(version: str, oldest: tuple[int, int]) -> bool:
    """Return whether the first two numbers of a version are at least those of `oldest`."""
    numbers = re.match(r"(\d+)\.(\d+)", version)
    return numbers is not None and (int(numbers[1]), int(numbers[2])) >= oldest


def newest_first(versions: Sequence[str]) -> Sequence[str]:
    """Sort versions by their numbers; a pre-release (`1.0-beta`) comes after its release."""
    return sorted(versions, key=_sort_key, reverse=True)


def refuse_install(images: Sequence[str]) -> None:
    """Raise EngineInstallFailed if versions come as images."""
    if images:
        raise EngineInstallFailed("Versions come as images here: build one, and add it to the setting engine_images")


class VersionFolder:
    """Folder of the installed versions of one software."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def versions(self) -> Sequence[str]:
        if not self._path.is_dir():
            return ()
        return newest_first([entry.name for entry in self._path.iterdir() if _VERSION.fullmatch(entry.name)])

    def get(self, version: str) -> Path:
        """Return the folder of a version. Raises EngineNotInstalled."""
        path = self._path / version
        if not _VERSION.fullmatch(version) or not path.is_dir():
            raise EngineNotInstalled(f"{self._path.name} {version[:64]} is not installed")
        return path

    def put(self, version: str, fill: Callable[[InstallStaging], None]) -> Path:
        """Return a version's folder, created with `fill` if missing. Raises InvalidVersionName, EngineInstallFailed."""
        path = self._path / check_version(version)
        if path.is_dir():
            return path
        try:
            with self._locked() as lock:
                if not path.is_dir():
                    self._create(path, fill, lock)
        except OSError as error:
            raise EngineInstallFailed(f"{self._path.name} {version} could not be installed: {error}") from error
        return path

    def add(self, version: str, fill: Callable[[InstallStaging, Path], None]) -> None:
        """Add files to an installed version.

        `fill` creates them in a staging folder and moves them to the version's in atomic steps; the next call repeats
        an interrupted one. Raises EngineNotInstalled, EngineInstallFailed.
        """
        path = self.get(version)
        staging = self._path / f".adding-{version}"
        try:
            with self._locked() as lock:
                shutil.rmtree(staging, ignore_errors=True)
                staging.mkdir()
                try:
                    fill(InstallStaging(staging, lock), path)
                finally:
                    shutil.rmtree(staging, ignore_errors=True)
        except OSError as error:
            raise EngineInstallFailed(f"{self._path.name} {version} could not be completed: {error}") from error

    def remove(self, version: str) -> None:
        """Remove a version atomically: rename it first, then delete its files. Idempotent."""
        path = self._path / check_version(version)
        if not path.is_dir():
            return
        with self._locked():
            removed = self._path / f".leaving-{version}"
            shutil.rmtree(removed, ignore_errors=True)
            if path.is_dir():
                path.rename(removed)
                shutil.rmtree(removed)

    def _create(self, path: Path, fill: Callable[[InstallStaging], None], lock: int) -> None:
        staging = self._path / f".staging-{path.name}"
        if staging.exists():
            shutil.rmtree(staging)
        staging.mkdir()
        staging.chmod(0o755)
        try:
            fill(InstallStaging(staging, lock))
            os.sync()  # the rename must not reach the disk before the files
            staging.rename(path)
        except BaseException:
            shutil.rmtree(staging, ignore_errors=True)
            raise

    @contextmanager
    def _locked(self) -> Generator[int]:
        self._path.mkdir(parents=True, exist_ok=True)
        self._path.chmod(0o755)
        lock = os.open(self._path / ".lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield lock
        finally:
            os.close(lock)


def _sort_key(version: str) -> list[tuple[int, int, str]]:
    parts = re.findall(r"\d+|[A-Za-z]+", version)
    return [(2, int(part), "") if part.isdigit() else (0, 0, part) for part in parts] + [(1, 0, "")]


def _install_failed(message: str, last_lines: Iterable[str]) -> EngineInstallFailed:
    output = " | ".join(last_lines)
    advice = advise_network(output)
    return EngineInstallFailed(f"{message}: {output}" + (f". {advice}" if advice else ""))


def _follow(process: subprocess.Popen[bytes], tail: deque[str], on_line: OnLine) -> int:
    assert process.stdout is not None
    with process.stdout as output:
        while raw := output.readline(_LINE_BYTES):
            line = raw.decode(errors="replace").rstrip()
            on_line(line)
            if line and not line.startswith("npm http"):
                tail.append(line[:500])
    return process.wait()
