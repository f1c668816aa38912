"""Where OpenClaw comes from: the npm package on a Node of its own, one folder a version.

The default version is installed from a lock that names every package and its checksum; another version by its name,
with the checksums that the registry gives. No script of its dependencies runs.
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
from roost.drivers.engine.install_staging import InstallStaging, ask
from roost.drivers.engine.openclaw import plugins
from roost.drivers.engine.version_folder import VersionFolder, check_version

DEFAULT_VERSION = "2026.9.6"
_HERE = Path(__file__).parent
_OLDEST = (2026, 8)  # the first that takes the platform's configuration as it stands
_STABLE = re.compile(r"\d+(\.\d+)*(-\d+)?")
_PACKAGES = 375  # fetched by the locked version; about as many by others
_OPTIONS = ("--ignore-scripts", "--no-audit", "--no-fund", "--no-update-notifier", "--omit=dev", "--loglevel=http")


def available(root: Path) -> Sequence[str]:
    """Stable versions, newest first. Raises EngineInstallFailed."""
    path = node.install(root, lambda _text, _done: None)
    answer = ask([*node.npm(path), "view", "openclaw", "versions", "--json"])
    try:
        versions = [str(version) for version in cast("list[object]", json.loads(answer))]
    except (ValueError, TypeError):
        raise EngineInstallFailed("The registry named no versions of OpenClaw") from None
    return [version for version in reversed(versions) if _STABLE.fullmatch(version) and _drivable(version)][:20]


def install(root: Path, version: str, progress: Progress) -> None:
    """Idempotent. Raises InvalidVersionName, EngineInstallFailed."""
    if not _drivable(check_version(version)):
        raise InvalidVersionName

    def fill(staging: InstallStaging) -> None:
        progress(f"Installing OpenClaw {version}", None)
        staging.run([*node.npm(path), *_command(version, staging.path)], _counter(progress))
        progress(f"Completing OpenClaw {version}", 0.95)
        _complete(path, staging)

    path = node.install(root, progress)
    folder(root).put(version, fill)
    try:
        plugins.install(folder(root), version, path, progress)
    except EngineInstallFailed as failure:  # it runs without them, and the next install tries again
        log.get_logger(__name__).warning(
            "channels.install_failed", engine="openclaw", version=version, error=failure.message
        )


def folder(root: Path) -> VersionFolder:
    return VersionFolder(root / "openclaw")


def _drivable(version: str) -> bool:
    numbers = re.match(r"(\d+)\.(\d+)", version)
    return numbers is not None and (int(numbers[1]), int(numbers[2])) >= _OLDEST


def _command(version: str, path: Path) -> Sequence[str]:
    if version != DEFAULT_VERSION:
        return ["install", *_OPTIONS, "--save-exact", "--prefix", str(path), f"openclaw@{version}"]
    for name in ("package.json", "package-lock.json"):
        shutil.copyfile(_HERE / name, path / name)
        (path / name).chmod(0o644)
    return ["ci", *_OPTIONS, "--prefix", str(path)]


def _complete(path: Path, staging: InstallStaging) -> None:
    """Run the program once, with a temporary home: its first start does the work of its install script.

    In a container it could not write beside itself.
    """
    home = staging.path / "home"
    home.mkdir()
    program = staging.path / "node_modules/openclaw/openclaw.mjs"
    staging.run(["/usr/bin/env", f"HOME={home}", str(path / "bin/node"), str(program), "--version"], lambda _line: None)
    shutil.rmtree(home)


def _counter(progress: Progress) -> Callable[[str], None]:
    """Counts the requests that npm tells of; there is about one for each package."""
    fetched = 0

    def on_line(line: str) -> None:
        nonlocal fetched
        if line.startswith("npm http "):
            fetched += 1
            progress(f"Fetching packages ({fetched})", min(0.95 * fetched / _PACKAGES, 0.95))

    return on_line
