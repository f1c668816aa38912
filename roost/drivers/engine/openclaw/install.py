"""Installation of OpenClaw: the npm package and its own Node, one folder per version.

A lock pins every package and checksum of the default version; other versions use the checksums of the registry. No
scripts of packages run.
"""

import json
import re
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import cast

from roost.core import log
from roost.drivers.engine import node
from roost.drivers.engine.contract import EngineInstallFailed, InvalidVersionName, Progress
from roost.drivers.engine.install_staging import InstallStaging, query_registry
from roost.drivers.engine.openclaw import plugins
from roost.drivers.engine.version_folder import VersionFolder, check_version, is_at_least

DEFAULT_VERSION = "2026.9.6"
_HERE = Path(__file__).parent
_OLDEST = (2026, 8)  # the first that accepts the platform's configuration
_STABLE = re.compile(r"\d+(\.\d+)*(-\d+)?")
_PACKAGES = 375  # of the locked version; others have about as many
_OPTIONS = ("--ignore-scripts", "--no-audit", "--no-fund", "--no-update-notifier", "--omit=dev", "--loglevel=http")


def available_versions(root: Path) -> Sequence[str]:
    """Return stable versions, newest first. Raises EngineInstallFailed."""
    path = node.install_node(root, lambda _text, _done: None)
    answer = query_registry([*node.npm_command(path), "view", "openclaw", "versions", "--json"])
    try:
        versions = [str(version) for version in cast("list[object]", json.loads(answer))]
    except (ValueError, TypeError):
        raise EngineInstallFailed("The registry lists no versions of OpenClaw") from None
    supported = [version for version in versions if _STABLE.fullmatch(version) and is_at_least(version, _OLDEST)]
    return supported[::-1][:20]


def install_version(root: Path, version: str, progress: Progress) -> None:
    """Install a version with its channels. Idempotent. Raises InvalidVersionName, EngineInstallFailed."""
    if not is_at_least(check_version(version), _OLDEST):
        raise InvalidVersionName

    def fill(staging: InstallStaging) -> None:
        progress(f"Installing OpenClaw {version}", None)
        staging.run([*node.npm_command(path), *_npm_arguments(version, staging.path)], _counter(progress))
        progress(f"Completing OpenClaw {version}", 0.95)
        _complete(path, staging)

    path = node.install_node(root, progress)
    folder = version_folder(root)
    folder.put(version, fill)
    try:
        plugins.install_plugins(folder, version, path, progress)
    except EngineInstallFailed as failure:  # OpenClaw works without them, and the next installation tries again
        log.get_logger(__name__).warning(
            "channels.install_failed", engine="openclaw", version=version, error=failure.message
        )


def version_folder(root: Path) -> VersionFolder:
    return VersionFolder(root / "openclaw")


def _npm_arguments(version: str, path: Path) -> Sequence[str]:
    if version != DEFAULT_VERSION:
        return ["install", *_OPTIONS, "--save-exact", "--prefix", str(path), f"openclaw@{version}"]
    for name in ("package.json", "package-lock.json"):
        shutil.copyfile(_HERE / name, path / name)
        (path / name).chmod(0o644)
    return ["ci", *_OPTIONS, "--prefix", str(path)]


def _complete(path: Path, staging: InstallStaging) -> None:
    """Run the program once with a temporary home, because its first start completes the installation.

    In a container it cannot write to its own folder.
    """
    home = staging.path / "home"
    home.mkdir()
    program = staging.path / "node_modules/openclaw/openclaw.mjs"
    staging.run(["/usr/bin/env", f"HOME={home}", str(path / "bin/node"), str(program), "--version"], lambda _line: None)
    shutil.rmtree(home)


def _counter(progress: Progress) -> Callable[[str], None]:
    """Return a callback that derives progress from npm's log of requests, about one per package."""
    fetched = 0

    def on_line(line: str) -> None:
        nonlocal fetched
        if line.startswith("npm http "):
            fetched += 1
            progress(f"Fetching packages ({fetched})", min(0.95 * fetched / _PACKAGES, 0.95))

    return on_line
