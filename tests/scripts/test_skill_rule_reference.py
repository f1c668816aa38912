"""The reference page is what the rules say."""

from skill_rule_reference import COMMAND, PAGE, render_rules

from roost.agents.library.skills.verdict.rules import RULES


def test_the_committed_page_is_the_present_one() -> None:
    assert PAGE.read_text() == render_rules(), f"the rules changed; regenerate the page: {COMMAND}"


def test_every_rule_is_there() -> None:
    page = render_rules()
    assert all(f"| `{rule.id}` | {rule.description} |" in page for rule in RULES)
