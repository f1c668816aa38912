"""The reference page is what the rules say."""

from roost.agents.library.skills.verdict.reference import COMMAND, render_rules
from roost.agents.library.skills.verdict.rules import RULES
from tests.architecture.code import ROOT


def test_the_committed_page_is_the_present_one() -> None:
    committed = (ROOT / "docs" / "reference" / "skill-rules.md").read_text()
    assert committed == render_rules(), f"the rules changed; regenerate the page: {COMMAND}"


def test_every_rule_is_there() -> None:
    page = render_rules()
    assert all(f"| `{rule.id}` | {rule.description} |" in page for rule in RULES)
