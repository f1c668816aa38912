"""Node for tests: pinned packages of a folder, installed once into a cache, and scripts that use them.

A folder has a `package.json` and a `package-lock.json`; the next test repeats an interrupted install.
"""

import asyncio
import fcntl
import hashlib
import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

_PINS = ("package.json", "package-lock.json", ".npmrc")
_ATTEMPTS = 3
_PATIENCE = 120.0


def installed(folder: Path) -> Path:
    """Return the `node_modules` of a folder's pinned packages. Skips the test if Node is not installed."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        pytest.skip("Node and npm are not installed")
    pins = [(folder / name).read_bytes() for name in _PINS if (folder / name).exists()]
    caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "roost-tests"
    cache = caches / f"{folder.name}-{hashlib.sha256(b''.join(pins)).hexdigest()[:16]}"
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (cache / "complete").exists():
            for name in _PINS:
                if (folder / name).exists():
                    shutil.copy(folder / name, cache / name)
            _install(npm, cache)
            (cache / "complete").touch()
    return cache / "node_modules"


async def run(script: Path, at: Path, packages: Path, environment: Mapping[str, str], *options: str) -> str:
    """Return the output of a script with the packages; `at` gets a copy of its folder. Errors fail the test."""
    at.mkdir(parents=True, exist_ok=True)
    for module in script.parent.glob("*.mjs"):
        shutil.copy(module, at / module.name)
    if not (at / "node_modules").exists():
        (at / "node_modules").symlink_to(packages)
    process = await asyncio.create_subprocess_exec(
        *("node", *options, script.name),
        cwd=at,
        env={"PATH": os.environ["PATH"], "HOME": str(at), **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        printed, complaints = await asyncio.wait_for(process.communicate(), _PATIENCE)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode == 0, f"{script.name}:\n{complaints.decode()}\n{printed.decode()}"
    return printed.decode()


def _install(npm: str, cache: Path) -> None:
    for attempt in range(_ATTEMPTS):
        done = subprocess.run(
            [npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline"],
            cwd=cache,
            capture_output=True,
            text=True,
            timeout=_PATIENCE,
            check=False,
        )
        if done.returncode == 0:
            return
        if attempt == _ATTEMPTS - 1:
            pytest.fail(f"npm could not install the clients: {done.stderr[-2000:]}")
