"""Tests mirror the package, so that whoever changes a module knows which file to run."""

from collections.abc import Mapping
from pathlib import PurePosixPath

import pytest

from tests.architecture.code import ROOT, Module, modules

LONG_ENOUGH = 60

TESTED_ELSEWHERE: Mapping[str, str] = {
    # module: the test file that covers it, where the mirrored path would be the wrong place
}


def mirror(module: Module) -> str:
    """`roost/core/seal.py` -> `tests/core/test_seal.py`; a contract -> the conformance suite of its kind."""
    path = PurePosixPath(module.path)
    if path.name == "contract.py":
        return f"tests/conformance/test_{path.parent.name}.py"
    name = path.parent.name if path.name == "__init__.py" else path.stem
    return str(PurePosixPath("tests", *path.parent.parts[1:], f"test_{name}.py"))


def test_every_module_has_its_test() -> None:
    missing = [
        f"{module.path} ({module.lines} lines): no {wanted}"
        for module in modules()
        if module.lines >= LONG_ENOUGH
        and not (ROOT / (wanted := TESTED_ELSEWHERE.get(module.path, mirror(module)))).is_file()
    ]
    assert not missing, "write the test, or name the one that covers it in TESTED_ELSEWHERE:\n" + "\n".join(missing)


def test_the_exceptions_are_needed() -> None:
    known = {module.path: mirror(module) for module in modules()}
    idle = [path for path in TESTED_ELSEWHERE if path not in known or (ROOT / known[path]).is_file()]
    assert not idle, f"TESTED_ELSEWHERE names {', '.join(idle)} without need: take it out"


def test_how_much_is_tested(capsys: pytest.CaptureFixture[str]) -> None:
    source = sum(module.lines for module in modules())
    tests = sum(file.read_text().count("\n") for file in (ROOT / "tests").rglob("*.py"))
    assert source
    assert tests
    with capsys.disabled():
        print(f"\ntests : source = {tests} : {source} lines = {tests / source:.2f} (wanted: 1.2 to 1.8)")
