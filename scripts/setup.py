"""Make .venv from the locks: `python3 scripts/setup.py runtime|dev|bench|facilitator [start]` (decision 0007).

Standard library only, because it runs before anything is installed. Idempotent: a stamp remembers what was
installed, and a second run is instant. One run at a time; one that was cut off is made good by the next.
"""

import contextlib
import fcntl
import hashlib
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
WHOLE = VENV / ".whole"  # exists while nothing is half installed; says for which folder the venv was made
PIP = (str(PYTHON), "-I", "-m", "pip", "--disable-pip-version-check", "--no-input")
TAIL = 15


def main() -> None:
    if sys.version_info < (3, 11):  # noqa: UP036 - an older Python gets this sentence, not a traceback
        sys.exit(
            f"Roost needs Python 3.11 or newer; {sys.executable} is {sys.version.split()[0]}.\n"
            "If you have a newer one, name it: make setup PYTHON=python3.12"
        )
    if len(sys.argv) < 2 or not (lock := ROOT / "requirements" / f"{sys.argv[1]}.txt").is_file():
        sys.exit(f"usage: {sys.argv[0]} runtime|dev|bench|facilitator [start]")
    sys.path.insert(0, str(ROOT))  # for imports after the check of Python's version
    with one_at_a_time():
        stamp = VENV / f".{lock.stem}.stamp"
        wanted = hashlib.sha256(lock.read_bytes() + (ROOT / "pyproject.toml").read_bytes()).hexdigest()
        if not is_whole():
            make_venv()
        elif stamp.exists() and stamp.read_text() == wanted:
            return
        install(lock, starts_engine=sys.argv[2:] == ["start"])
        stamp.write_text(wanted)


@contextlib.contextmanager
def one_at_a_time() -> Iterator[None]:
    """Two `make` at once: the second waits, then finds the work done.

    The programs that a run starts inherit the lock, so it is held until the last of them ends.
    """
    with (ROOT / ".venv.lock").open("a") as lock:
        os.set_inheritable(lock.fileno(), True)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("Another setup is running here; waiting for it ...", flush=True)
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def is_whole() -> bool:
    """Return whether the venv works; a moved checkout or a removed Python breaks it."""
    return PYTHON.exists() and WHOLE.exists() and WHOLE.read_text() == str(VENV)


def make_venv() -> None:
    """Debian and Ubuntu ship Python without `ensurepip`; a package of its own brings it."""
    print("Making .venv ...", flush=True)
    command = [sys.executable, "-I", "-m", "venv", "--clear", str(VENV)]
    made = subprocess.run(command, check=False, capture_output=True, text=True, close_fds=False)
    if made.returncode and "ensurepip" in made.stdout + made.stderr:
        install_ensurepip()
        made = subprocess.run(command, check=False, capture_output=True, text=True, close_fds=False)
    if made.returncode:
        sys.exit(f"{made.stdout}{made.stderr}\n.venv could not be made; the lines above say why.")
    WHOLE.write_text(str(VENV))


def install_ensurepip() -> None:
    package = f"python{sys.version_info.major}.{sys.version_info.minor}-venv"
    if not Path("/usr/bin/apt-get").exists():
        sys.exit(f"{sys.executable} has no ensurepip, so it cannot make a venv. Install it and try again.")
    if os.geteuid() != 0:
        sys.exit(f"Python's venv module is incomplete here. Run: sudo apt-get install -y {package}   and try again.")
    print(f"Installing the Debian package {package} ...", flush=True)
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for arguments in (["update"], ["install", "-y", "--no-install-recommends", package]):
        apt = subprocess.run(
            ["/usr/bin/apt-get", "-q", *arguments], check=False, capture_output=True, text=True, env=environment
        )
    if apt.returncode:
        sys.exit(f"{apt.stdout}{apt.stderr}\nThe Debian package {package} could not be installed.")


def install(lock: Path, *, starts_engine: bool) -> None:
    """Install the packages; a killed run leaves no `WHOLE`, a failed one no stamp, so that the next goes on."""
    WHOLE.unlink()
    print(f"Installing {lock.name} ...", flush=True)
    done = install_first(lock)
    if done and starts_engine:
        start_engine()
    done = done and install_packages("--require-hashes", "-r", str(lock))
    if done:
        print("Installing roost ...", flush=True)
        done = install_packages("--no-deps", "--no-build-isolation", "-e", str(ROOT))
    WHOLE.write_text(str(VENV))
    if not done:
        sys.exit("The dependencies could not be installed; the lines above say why.")


def install_first(lock: Path) -> bool:
    """Install the locked uv, which installs the rest several times faster than pip, and what `start_engine` imports."""
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as requirements:
        requirements.writelines(re.findall(r"^(?:uv|structlog)==.*\n(?: .*\n)*", lock.read_text(), re.MULTILINE))
        requirements.flush()
        return run_installer([*PIP, "install", "--require-hashes", "-r", requirements.name])


def start_engine() -> None:
    """Begin to install OpenClaw, which takes longest, beside the packages; `prepare.py` waits for its lock.

    Only in the default folder, and silently: whatever fails here, `prepare.py` tries again and reports.
    """
    if "ROOST_DATA" in os.environ or (ROOT / ".roost" / "roost.toml").exists():  # which may name another folder
        return
    code = (
        "from roost.drivers.engine.openclaw import install\n"
        "from dashboard import ENGINES\n"
        "install.install_version(ENGINES, install.DEFAULT_VERSION, lambda *_: None)"
    )
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'scripts'}"}
    quiet = subprocess.DEVNULL
    subprocess.Popen([PYTHON, "-c", code], env=environment, stdin=quiet, stdout=quiet, stderr=quiet)


def install_packages(*arguments: str) -> bool:
    """Install with uv; with pip where that fails, because only pip knows all that pip can be configured with."""
    from roost.drivers.engine.package_installer import uv_command

    if run_installer([*uv_command(PYTHON), "--compile-bytecode", "--python", str(PYTHON), *arguments], explain=False):
        return True
    print("uv could not install them; trying with pip ...", flush=True)
    return run_installer([*PIP, "install", *arguments])


def run_installer(command: Sequence[str], *, explain: bool = True) -> bool:
    """Run uv or pip; show what it does, and what it said only when it failed."""
    from roost.core.machine.network_advice import advise_network

    said: list[str] = []
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, close_fds=False
    ) as process:
        for line in process.stdout or ():
            said.append(line.rstrip())
            progress(f"  {line.strip()}")
    progress("")
    if process.returncode and explain:
        advice = next(filter(None, map(advise_network, said)), "")
        print("\n".join([*said[-TAIL:], *filter(None, [advice])]), file=sys.stderr)
    return process.returncode == 0


def progress(text: str) -> None:
    """One line that is written over, on a terminal only."""
    if sys.stdout.isatty():
        print(f"\r\033[K{text[:78]}", end="", flush=True)


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit("\nStopped. The next run begins again where that is safe.")
