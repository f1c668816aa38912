"""OpenClaw's channels that are separate packages, installed in the folder of its bundled plugins.

A gateway loads plugins from other folders only if root or its own user owns them, which is impossible in a container.
Each package contains its dependencies. They are moved next to the engine and linked, because OpenClaw treats every
script in its own folder as an ES module. A plugin is only loaded if its channel is enabled.
"""

import base64
import hashlib
import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from roost.drivers.engine import node
from roost.drivers.engine.contract import EngineInstallFailed, Progress
from roost.drivers.engine.install_staging import InstallStaging
from roost.drivers.engine.version_folder import VersionFolder

NAMES = ("slack", "discord", "whatsapp")
_LOCK: Mapping[str, Mapping[str, str]] = json.loads(Path(__file__).with_name("plugins.json").read_text())
_EXTENSIONS = Path("node_modules/openclaw/dist/extensions")
_MODULES = "node_modules"  # modules find each other only in a folder of this name
# Dependencies to take from the engine instead. The engine's undici sends Slack's WebSocket through the proxy; with
# another version it would never connect.
_SHARED: Mapping[str, Sequence[str]] = {"slack": ("undici",)}
_NPM_OPTIONS = ("--ignore-scripts", "--no-update-notifier", "--fetch-retries=1", "--loglevel=http")


def installed_plugins(path: Path) -> list[str]:
    """Return the plugins in a version's folder."""
    return [name for name in NAMES if (path / _EXTENSIONS / name / "openclaw.plugin.json").is_file()]


def install_plugins(folder: VersionFolder, version: str, node_path: Path, progress: Progress) -> None:
    """Add the missing plugins to an installed version. Idempotent. Raises EngineInstallFailed."""

    def add(staging: InstallStaging, path: Path) -> None:
        missing = [name for name in NAMES if name not in installed_plugins(path)]
        packages = [f"@openclaw/{name}@{version}" for name in missing]
        progress(f"Fetching OpenClaw's channels: {', '.join(missing)}", None)
        staging.run([*node.npm_command(node_path), "pack", *_NPM_OPTIONS, *packages], lambda _line: None)
        for number, name in enumerate(missing):
            progress(f"Unpacking {name}", number / len(missing))
            _unpack(staging, name, version)
            _move_in(staging.path, path, name)

    if len(installed_plugins(folder.get(version))) < len(NAMES):
        folder.add(version, add)


def _unpack(staging: InstallStaging, name: str, version: str) -> None:
    archive = staging.path / f"openclaw-{name}-{version}.tgz"
    expected = _LOCK.get(version, {}).get(name)  # npm checks other versions against the registry
    if expected is not None and expected != _integrity(archive):
        raise EngineInstallFailed(f"@openclaw/{name} {version} has another checksum than expected")
    target = staging.path / name
    target.mkdir()
    # Not Python's tarfile, which before 3.11.4 has no filter for paths outside the folder.
    staging.run(["tar", "-xzf", str(archive), "-C", str(target), "--no-same-owner"], lambda _line: None)


def _move_in(staging: Path, path: Path, name: str) -> None:
    """Move a plugin's modules, then the plugin: the last rename makes it count as installed."""
    package, modules, target = staging / name / "package", path / "plugins" / name, path / _EXTENSIONS / name
    for old in (modules, target):
        shutil.rmtree(old, ignore_errors=True)
    for folder in (modules.parent, modules):
        folder.mkdir(exist_ok=True)
        folder.chmod(0o755)
    for module in _SHARED.get(name, ()):
        shutil.rmtree(package / _MODULES / module, ignore_errors=True)
    (package / _MODULES).rename(modules / _MODULES)
    up = "/".join(".." for _ in target.relative_to(path).parts)
    (package / _MODULES).symlink_to(f"{up}/plugins/{name}/{_MODULES}")
    package.rename(target)


def _integrity(archive: Path) -> str:
    try:
        with archive.open("rb") as content:
            digest = hashlib.file_digest(content, "sha512").digest()
    except OSError as error:
        raise EngineInstallFailed(f"{archive.name} cannot be read: {error}") from None
    return f"sha512-{base64.b64encode(digest).decode()}"
