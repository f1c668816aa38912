"""Installation of OpenClaw from the registry into an empty folder, complete for a read-only mount."""

import shutil
from pathlib import Path

import pytest

from roost.core.problem import Problem
from roost.drivers.engine.openclaw import install
from roost.drivers.engine.openclaw.driver import OpenClaw


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
        install.install_version(tmp_path, version, lambda _step, _done: None)
    assert not (tmp_path / "node").exists()
