"""OpenClaw's channels beside it: fetched by a stand-in for npm, checked, and whole or not there at all."""

import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from roost.drivers.engine.contract import EngineInstallFailed
from roost.drivers.engine.openclaw import plugins
from roost.drivers.engine.version_folder import VersionFolder

VERSION, PINNED = "2099.1.1", "2026.9.6"
Npm = Callable[..., Path]


@pytest.fixture
def folder(tmp_path: Path) -> VersionFolder:
    """Two versions of an engine."""
    made = VersionFolder(tmp_path / "openclaw")
    for version in (VERSION, PINNED):
        made.put(version, lambda staging: (staging.path / "node_modules/openclaw/dist/extensions").mkdir(parents=True))
    return made


@pytest.fixture
def npm(tmp_path: Path) -> Npm:
    """A Node whose npm "packs" from a folder of archives, and notes that it was called."""

    def make(version: str = VERSION, but: str = "") -> Path:
        shelf = tmp_path / "shelf"
        for name in plugins.NAMES:
            package = shelf / name / "package"
            (package / "node_modules/zod").mkdir(parents=True, exist_ok=True)
            (package / "node_modules/zod/index.js").write_text("zod")
            (package / "node_modules/undici").mkdir(exist_ok=True)
            (package / "openclaw.plugin.json").write_text("{}")
            if name != but:
                with tarfile.open(shelf / f"openclaw-{name}-{version}.tgz", "w:gz") as archive:
                    archive.add(package, "package")
        program = tmp_path / "node/bin/node"
        program.parent.mkdir(parents=True, exist_ok=True)
        program.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/calls\ncp {shelf}/*.tgz .\n')
        program.chmod(0o755)
        return tmp_path / "node"

    return make


def install(folder: VersionFolder, version: str, node: Path) -> list[str]:
    told: list[str] = []
    plugins.install(folder, version, node, lambda text, _done: told.append(text))
    return told


def test_what_is_missing_is_added_once(folder: VersionFolder, npm: Npm, tmp_path: Path) -> None:
    path = folder.get(VERSION)
    assert plugins.installed(path) == []
    told = install(folder, VERSION, npm())
    assert told[0] == "Fetching OpenClaw's channels: slack, discord, whatsapp"
    assert plugins.installed(path) == ["slack", "discord", "whatsapp"]
    place = path / "node_modules/openclaw/dist/extensions/discord"
    assert (place / "node_modules/zod/index.js").read_text() == "zod"
    assert (place / "node_modules").resolve() == path / "plugins/discord/node_modules"
    assert not (place / "node_modules").readlink().is_absolute()  # a container sees the folder elsewhere
    assert install(folder, VERSION, npm()) == []
    assert len((tmp_path / "calls").read_text().splitlines()) == 1
    assert [entry.name for entry in path.parent.iterdir() if entry.name.startswith(".adding")] == []


def test_slack_speaks_through_the_engines_own_undici(folder: VersionFolder, npm: Npm) -> None:
    install(folder, VERSION, npm())
    held = {name: (folder.get(VERSION) / "plugins" / name / "node_modules/undici").exists() for name in plugins.NAMES}
    assert held == {"slack": False, "discord": True, "whatsapp": True}


def test_a_cut_off_addition_is_made_whole(folder: VersionFolder, npm: Npm) -> None:
    path = folder.get(VERSION)
    with pytest.raises(EngineInstallFailed):
        install(folder, VERSION, npm(but="whatsapp"))
    assert plugins.installed(path) == ["slack", "discord"]
    (path / "plugins/whatsapp/node_modules/left").mkdir(parents=True)
    install(folder, VERSION, npm())
    assert plugins.installed(path) == ["slack", "discord", "whatsapp"]
    assert not (path / "plugins/whatsapp/node_modules/left").exists()


def test_another_checksum_than_the_locks_is_refused(folder: VersionFolder, npm: Npm) -> None:
    with pytest.raises(EngineInstallFailed, match="checksum"):
        install(folder, PINNED, npm(PINNED))
    assert plugins.installed(folder.get(PINNED)) == []


def test_an_npm_that_fails_leaves_nothing(folder: VersionFolder, tmp_path: Path) -> None:
    with pytest.raises(EngineInstallFailed):
        install(folder, VERSION, tmp_path / "no-node")
    assert plugins.installed(folder.get(VERSION)) == []
