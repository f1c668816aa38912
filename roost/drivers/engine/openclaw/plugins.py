"""The channels of OpenClaw that come in packages of their own, put where a gateway looks for those that it brought.

A container cannot own them: a gateway loads plug-ins from elsewhere only if its own user or root owns them.
Each package brings all that it depends on. These modules stand beside the engine, linked to: OpenClaw takes every
script below its own folder for an ES module. A plug-in is loaded when its channel is on, and costs nothing before.
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
_MODULES = "node_modules"  # the name matters: modules that are beside each other find each other by it
# What is left out is found beside the engine. Slack's WebSocket is led through the proxy by the engine's undici, which
# one of another version does not understand: it would never connect.
_LEFT_OUT: Mapping[str, Sequence[str]] = {"slack": ("undici",)}
_NPM_OPTIONS = ("--ignore-scripts", "--no-update-notifier", "--fetch-retries=1", "--loglevel=http")


def installed(path: Path) -> list[str]:
    """Which of them a version's folder has."""
    return [name for name in NAMES if (path / _EXTENSIONS / name / "openclaw.plugin.json").is_file()]


def install(folder: VersionFolder, version: str, node_path: Path, progress: Progress) -> None:
    """Add what is missing to an installed version. Idempotent. Raises EngineInstallFailed."""

    def add(staging: InstallStaging, path: Path) -> None:
        missing = [name for name in NAMES if name not in installed(path)]
        packages = [f"@openclaw/{name}@{version}" for name in missing]
        progress(f"Fetching OpenClaw's channels: {', '.join(missing)}", None)
        staging.run([*node.npm(node_path), "pack", *_NPM_OPTIONS, *packages], lambda _line: None)
        for number, name in enumerate(missing):
            progress(f"Unpacking {name}", number / len(missing))
            _unpack(staging, name, version)
            _move_in(staging.path, path, name)

    if len(installed(folder.get(version))) < len(NAMES):
        folder.add(version, add)


def _unpack(staging: InstallStaging, name: str, version: str) -> None:
    archive = staging.path / f"openclaw-{name}-{version}.tgz"
    expected = _LOCK.get(version, {}).get(name)  # of another version npm has checked what the registry says
    if expected is not None and expected != _integrity(archive):
        raise EngineInstallFailed(f"@openclaw/{name} {version} is not what it should be: its checksum is another one")
    place = staging.path / name
    place.mkdir()
    # Not Python's own: before 3.11.4 it has no filter, and follows what an archive says of paths outside.
    staging.run(["tar", "-xzf", str(archive), "-C", str(place), "--no-same-owner"], lambda _line: None)


def _move_in(staging: Path, path: Path, name: str) -> None:
    """The modules first: the plug-in counts as installed by the rename that comes last."""
    package, modules, place = staging / name / "package", path / "plugins" / name, path / _EXTENSIONS / name
    for old in (modules, place):
        shutil.rmtree(old, ignore_errors=True)
    for folder in (modules.parent, modules):
        folder.mkdir(exist_ok=True)
        folder.chmod(0o755)
    for own in _LEFT_OUT.get(name, ()):
        shutil.rmtree(package / _MODULES / own, ignore_errors=True)
    (package / _MODULES).rename(modules / _MODULES)
    up = "/".join(".." for _ in place.relative_to(path).parts)
    (package / _MODULES).symlink_to(f"{up}/plugins/{name}/{_MODULES}")
    package.rename(place)


def _integrity(archive: Path) -> str:
    try:
        with archive.open("rb") as content:
            digest = hashlib.file_digest(content, "sha512").digest()
    except OSError as error:
        raise EngineInstallFailed(f"{archive.name} is not there: {error}") from None
    return f"sha512-{base64.b64encode(digest).decode()}"
