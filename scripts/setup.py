"""Make .venv from the locked requirements: `python3 scripts/setup.py runtime|dev`.

Standard library only, because it runs before anything is installed. Idempotent: a stamp in the venv
remembers what was installed, and a second run is instant.
"""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"


def main() -> None:
    if sys.version_info < (3, 11):
        sys.exit(f"Roost needs Python 3.11 or newer; {sys.executable} is {sys.version.split()[0]}.")
    lock = ROOT / "requirements" / f"{sys.argv[1]}.txt"
    stamp = VENV / f".{sys.argv[1]}.stamp"
    wanted = hashlib.sha256(lock.read_bytes() + (ROOT / "pyproject.toml").read_bytes()).hexdigest()
    if PYTHON.exists() and stamp.exists() and stamp.read_text() == wanted:
        return
    if not PYTHON.exists():
        make_venv()
    print(f"Installing the locked dependencies of {lock.name} into .venv ...", flush=True)
    pip("install", "--require-hashes", "-r", str(lock))
    pip("install", "--no-deps", "--no-build-isolation", "-e", str(ROOT))
    stamp.write_text(wanted)


def make_venv() -> None:
    """Debian and Ubuntu ship Python without `ensurepip`; the package python3-venv brings it."""
    print("Making .venv ...", flush=True)
    command = [sys.executable, "-m", "venv", str(VENV)]
    if subprocess.run(command, check=False, capture_output=True).returncode == 0:
        return
    install = ["apt-get", "install", "-y", "-q", "python3-venv"]
    if os.geteuid() != 0 or not Path("/usr/bin/apt-get").exists():
        sys.exit(f"Python's venv module is incomplete here. Run: sudo {' '.join(install)}   and try again.")
    print("Installing the Debian package python3-venv ...", flush=True)
    subprocess.run(["apt-get", "update", "-q"], check=True)
    subprocess.run(install, check=True, env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"})
    subprocess.run([*command, "--clear"], check=True)


def pip(*arguments: str) -> None:
    command = [str(PYTHON), "-m", "pip", "--quiet", "--disable-pip-version-check", *arguments]
    if subprocess.run(command, check=False).returncode:
        sys.exit("The dependencies could not be installed; the lines above say why. Nothing else was changed.")


main()
