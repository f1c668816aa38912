"""A Docker Engine of the tests: Debian's packages in the user's cache, started as root, with an image for agents.

`python -m tests.support.docker_engine` fills the cache, which takes minutes.
"""

import hashlib
import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

_PACKAGES = ("docker.io", "containerd", "runc", "tini")
_PROGRAMS = "python3,ca-certificates,curl,git,procps"
_SUITE = "bookworm"
IMAGE, DOCKER_SOCKET = "roost-test:base", "TEST_DOCKER_SOCKET"
_DEADLINE, _START_SECONDS = 900.0, 90.0


class DockerUnavailable(Exception):  # noqa: N818 - a reason to skip
    """No engine can be started here."""


class DockerEngine:
    """A running engine; `socket` is its socket."""

    def __init__(self, folder: Path) -> None:
        """Start it with its files in `folder`. Raises DockerUnavailable."""
        programs, image = fill_cache()
        self.folder, self.socket = folder, folder / "docker.sock"
        self._programs = programs
        folder.mkdir(parents=True, exist_ok=True)
        self.start()
        self._call("--data-binary", f"@{image}", "-H", "Content-Type: application/x-tar", query=_import_query())

    def start(self) -> None:
        """Return when it answers; on a busy machine it gives up on its containerd after 15 s, and is tried again."""
        deadline = time.monotonic() + _START_SECONDS
        self._spawn()
        while not self._answers():
            if time.monotonic() > deadline:
                last = (self.folder / "log").read_text()[-500:]
                raise DockerUnavailable(f"dockerd does not start here: {last}")
            if self._process.poll() is not None:
                self._spawn()
            time.sleep(0.2)

    def _spawn(self) -> None:
        path = f"{self._programs}/usr/bin:{self._programs}/usr/sbin:{os.environ['PATH']}"
        options = {"data-root": "data", "exec-root": "exec", "pidfile": "pid"}
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                ["dockerd", *(f"--{name}={self.folder / file}" for name, file in options.items()),
                 "--storage-driver=overlay2", "--iptables=false", "--ip6tables=false", "--bridge=none",
                 "--ip-forward=false", "--live-restore", "-H", f"unix://{self.socket}"],
                env={**os.environ, "PATH": path}, stdout=log, stderr=log,
            )  # fmt: skip

    def get(self, query: str) -> Any:
        """Return the answer of `GET`."""
        return get_json(self.socket, query)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def stop(self) -> None:
        if self._process.poll() is not None:  # a test has failed after it killed it
            self.start()
        for container in self.get("containers/json?all=1"):
            self._call("-X", "DELETE", query=f"containers/{container['Id']}?force=1")
        self._process.send_signal(signal.SIGTERM)
        self._process.wait(30)
        subprocess.run(["umount", "--lazy", self.folder / "data"], check=False, capture_output=True)  # `live-restore`
        shutil.rmtree(self.folder / "data", ignore_errors=True)

    def _answers(self) -> bool:
        return subprocess.run(_request(self.socket, "_ping"), check=False, capture_output=True).returncode == 0

    def _call(self, *options: str, query: str) -> None:
        command = [*_request(self.socket, query), *options]
        subprocess.run(command, check=True, capture_output=True, timeout=_DEADLINE)


def get_json(socket: Path, query: str) -> Any:
    """Return what an engine answers to `GET`."""
    done = subprocess.run(_request(socket, query), check=True, capture_output=True, timeout=_DEADLINE)
    return json.loads(done.stdout)


def _request(socket: Path, query: str) -> list[str]:
    return ["curl", "-fsS", "--unix-socket", str(socket), f"http://docker/v1.41/{query}"]


def fill_cache() -> tuple[Path, Path]:
    """Return the folder of the engine's programs and the image's archive, made if missing. Raises DockerUnavailable."""
    if os.geteuid() or not shutil.which("apt-get"):
        raise DockerUnavailable("a Docker Engine needs root, and Debian's packages")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "roost-tests"
    digest = hashlib.sha256(f"{_SUITE} {_PROGRAMS}".encode()).hexdigest()[:16]
    return _fetch(cache / "docker", _unpack), _fetch(cache / f"agent-{digest}.tar", _make_image)


def _import_query() -> str:
    repository, _, tag = IMAGE.partition(":")
    return f"images/create?fromSrc=-&repo={repository}&tag={tag}"


def _fetch(target: Path, make: Callable[[Path], None]) -> Path:
    """Return a file or folder of the cache, made if it is missing. Raises DockerUnavailable."""
    if not target.exists():
        draft = target.with_name(f".{os.getpid()}-{target.name}")
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            make(draft)
        except (OSError, subprocess.SubprocessError) as error:
            reason = getattr(error, "stderr", None) or error
            raise DockerUnavailable(f"{target.name} could not be made: {reason}") from None
        if not target.exists():
            draft.rename(target)
    return target


def _unpack(folder: Path) -> None:
    downloads = folder.with_name(f"{folder.name}.debs")
    downloads.mkdir()
    _run("apt-get", "download", "-q", *_PACKAGES, cwd=downloads)
    for package in downloads.glob("*.deb"):
        _run("dpkg-deb", "-x", package, folder)
    shutil.rmtree(downloads)


def _make_image(archive: Path) -> None:
    if not shutil.which("mmdebstrap"):
        _run("apt-get", "install", "-y", "-q", "--no-install-recommends", "mmdebstrap")
    packed = archive.with_suffix(".draft.tar")
    _run("mmdebstrap", "--variant=minbase", f"--include={_PROGRAMS}", _SUITE, packed)
    packed.rename(archive)


def _run(*command: str | Path, cwd: Path | None = None) -> None:
    subprocess.run(command, check=True, capture_output=True, text=True, timeout=_DEADLINE, cwd=cwd)


if __name__ == "__main__":
    try:
        fill_cache()
    except DockerUnavailable as reason:
        print(f"The tests of Docker will be skipped: {reason}")
