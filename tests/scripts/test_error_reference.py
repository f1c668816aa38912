"""Errors have an identity: codes are unique, hints and docs name codes that exist, and all of them are listed."""

import re
from collections import Counter
from collections.abc import Sequence
from http import HTTPStatus

import error_reference
import pytest

from roost.cli.output.hints import HINTS
from roost.core.problem import Problem, error_code
from roost.web.errors import status_code
from tests.architecture.code import ROOT, modules


@pytest.fixture(scope="module")
def problems() -> Sequence[type[Problem]]:
    return error_reference.list_problems()


def test_each_error_has_a_code_of_its_own(problems: Sequence[type[Problem]]) -> None:
    codes = [error_code(one) for one in problems] + [status_code(one) for one in error_reference.PLAIN]
    assert len(codes) > 400
    assert [code for code, count in Counter(codes).items() if count > 1] == []
    assert [code for code in codes if not re.fullmatch(r"[a-z]+(_[a-z]+)*", code)] == []


def test_every_class_of_errors_is_found(problems: Sequence[type[Problem]]) -> None:
    """A class that derives from one that was found is found, too, wherever in the package it stands."""
    names = {one.__name__ for one in problems}
    derived = {
        match[1]
        for module in modules()
        for match in re.finditer(r"^ *class (\w+)\(([\w., ]+)\):", module.source, re.MULTILINE)
        if names & {base.strip().rpartition(".")[2] for base in match[2].split(",")}
    }
    assert derived - names == set()
    assert len(derived) > 390


def test_each_hint_is_for_a_code(problems: Sequence[type[Problem]]) -> None:
    codes = {error_code(one) for one in problems} | {status_code(one) for one in error_reference.PLAIN}
    assert HINTS.keys() - codes == set()


def test_the_committed_page_is_the_present_one() -> None:
    wanted = error_reference.render_page()
    assert error_reference.PAGE.read_text() == wanted, f"errors changed; run {error_reference.COMMAND}"


def test_the_page_has_each_code_of_a_status() -> None:
    """Responses of the edge, of the parser and of the framework have no class; their statuses are literals."""
    page = error_reference.PAGE.read_text()
    statuses = {
        int(match[1])
        for module in modules()
        for match in re.finditer(
            r"(?:HTTPException\(|(?:text|error|status)_response\((?:\w+, )?)(\d{3})\b", module.source
        )
        if match[1] >= "400"
    }
    named = {
        name for module in modules() for name in re.findall(r"HTTPStatus\.([A-Z_]+), \"", module.source)
    }  # the messages that go with them
    assert len(statuses) > 3
    assert len(named) > 8
    codes = {status_code(status) for status in statuses} | {status_code(int(HTTPStatus[name])) for name in named}
    assert [code for code in sorted(codes) if f"| `{code}` |" not in page] == []


def test_the_dashboard_knows_codes_that_exist(problems: Sequence[type[Problem]]) -> None:
    codes = {error_code(one) for one in problems}
    sources = [path for path in (ROOT / "dashboard" / "src").rglob("*.ts*") if ".test." not in path.name]
    assert len(sources) > 100
    used = {code for path in sources for code in re.findall(r"\.code === '(\w+)'", path.read_text())}
    assert used - codes == set()


def test_the_dashboard_compares_no_text_of_an_error() -> None:
    pattern = re.compile(
        r"(?<!typeof )(?:error|problem|reason)\??\.(?:message|detail)\??"
        r"(?: ===|\.(?:includes|startsWith|endsWith|match)\()"
    )
    sources = [path for path in (ROOT / "dashboard" / "src").rglob("*.ts*") if ".test." not in path.name]
    assert [path.name for path in sources if pattern.search(path.read_text())] == []
