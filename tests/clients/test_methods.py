"""No method of the published clients is passed over: each is in a journey, and in the page about them, or known not to
be here.
"""

import json
import re
from pathlib import Path

import pytest

from tests.support import node

FOLDER = Path(__file__).parent
OLD = FOLDER / "old"
PAGE = FOLDER.parents[1] / "docs" / "guides" / "coming-from-pinata.md"
CLIENTS = {
    "pinata": (FOLDER, "*.mjs"),
    "pinata-web3": (FOLDER, "[aw]*.mjs"),
    "pinata-1": (OLD, "private.mjs"),
    "@pinata/sdk": (OLD, "fixed.mjs"),
}


@pytest.mark.parametrize("package", CLIENTS)
async def test_each_method_is_called_in_a_journey_and_told_of(package: str, tmp_path: Path) -> None:
    folder, journeys = CLIENTS[package]
    packages = node.installed(folder)
    told = await node.run(FOLDER / "methods.mjs", tmp_path, packages, {"ROOST_PACKAGE": package})
    methods = [method for method in json.loads(told) if not _is_elsewhere(package, method)]
    assert len(methods) > 10
    walked = "\n".join(file.read_text() for file in folder.glob(journeys))
    page = PAGE.read_text()
    assert [method for method in methods if not _is_called(method, walked)] == []
    assert [method for method in methods if not re.search(rf"\b{method.rpartition('.')[2]}\b", page)] == []


def _is_called(method: str, journeys: str) -> bool:
    """In full; filters of numbers are two objects of one kind, where either will do."""
    owner, _, name = method.rpartition(".")
    way = r"\." if owner.startswith("analytics.") else rf"\b{owner}\." if owner else r"\b"
    return re.search(rf"{way}{name}\(", journeys) is not None


def _is_elsewhere(package: str, method: str) -> bool:
    """Not here yet, or the same in another package that is tried."""
    return package == "pinata-1" and method.partition(".")[0] == "analytics"
