"""Every kind of line has its files; `rules.py` has the table."""

import pytest

from tests.architecture.code import modules, parse
from tests.architecture.rules import RULES, Rule

named = pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name.replace(" ", "-"))


@named
def test_lines_stand_where_they_belong(rule: Rule) -> None:
    wrong = sorted(
        {(module.path, line) for module in modules() if not module.within(*rule.paths) for line in rule.find(module)}
    )
    assert not wrong, "\n" + "\n".join(f"{path}:{line}: {rule.name}: {rule.advice}" for path, line in wrong)


@named
def test_the_rule_bites(rule: Rule) -> None:
    assert list(rule.find(parse("roost/agents/registry/repository.py", rule.example + "\n")))


@named
def test_no_single_file_is_let_in_without_need(rule: Rule) -> None:
    files = [path for path in rule.paths if "*" not in path]
    idle = [file for file in files if not any(set(rule.find(module)) for module in modules() if module.within(file))]
    assert not idle, f"rules.py lets {rule.name} stand in {', '.join(idle)}, where there is none: take it out"
