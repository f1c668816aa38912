"""Error messages of the contract stand once, in the package that raises them: with its errors, model or service."""

import re

import pytest

from tests.architecture.code import ROOT, literals, modules

CONTRACT = ROOT.parent / "shared" / "contract" / "agents-api.md"
_WHERE = re.compile(r"roost/(.+/)?(errors|model|service)\.py|roost/drivers/\w+/contract\.py")


def messages(document: str) -> set[str]:
    """The quoted strings of the table by status, and the first column of the table of 500 messages."""
    errors = document.partition("\n## Errors\n")[2].partition("\n## ")[0]
    by_status, _, by_message = errors.partition("### 500 messages")
    found = set(re.findall(r'\("([^"]+)"\)', by_status))
    for row in by_message.splitlines():
        cells = [cell.strip() for cell in row.strip("|").split("|")]
        if row.startswith("|") and cells[0] not in ("Message", "---"):
            found.update(cells[0].split(" / "))
    return found


def test_each_message_of_the_contract_stands_once() -> None:
    if not CONTRACT.is_file():
        pytest.skip("the contract documents are not beside this checkout")
    wanted = messages(CONTRACT.read_text())
    places: dict[str, list[str]] = {}
    for module in modules():
        for line, text in literals(module):
            if text in wanted:
                places.setdefault(text, []).append(f"{module.path}:{line}")
    wrong = [
        f"{text!r} stands in {', '.join(where)}"
        for text, where in places.items()
        if len(where) > 1 or not _WHERE.match(where[0])
    ]
    assert not wrong, "a message of the contract stands once, with the errors of its package:\n" + "\n".join(wrong)


def test_each_message_is_asked_for_over_http() -> None:
    if not CONTRACT.is_file():
        pytest.skip("the contract documents are not beside this checkout")
    raised = messages(CONTRACT.read_text()) & {text for module in modules() for _, text in literals(module)}
    asked = "".join(path.read_text() for path in (ROOT / "tests/contract").glob("test_*.py"))
    assert not [text for text in raised if f'"{text}"' not in asked]


def test_the_tables_are_read() -> None:
    document = (
        '# A\n\n## Errors\n\n| 400 | exec: empty ("Invalid command") |\n| 401 | none |\n\n### 500 messages\n\n'
        "| Message | Where |\n|---|---|\n| Sync failed | sync |\n| Failed to x / Failed to y | z |\n\n"
        "## Limits\n| a | b |\n"
    )
    assert messages(document) == {"Invalid command", "Sync failed", "Failed to x", "Failed to y"}
