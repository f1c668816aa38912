"""Names of agents (case C6), and the transitions between their states."""

import pytest

from roost.agents.registry.errors import InvalidAgentName
from roost.agents.registry.model import TRANSITIONS, AgentState, validate_agent_name


@pytest.mark.parametrize("name", ["a", "Büro 7", "x" * 100, "🐣" * 100, 'O\'Neil "the bot"', "名前", "a/b & c"])
def test_good_names_are_trimmed(name: str) -> None:
    assert validate_agent_name(f"  {name} ") == name


@pytest.mark.parametrize(
    "name",
    [
        "",
        "   ",
        "x" * 101,
        "🐣" * 101,
        "a\nb",
        "a\0b",
        "a\u200bb",
        "a\u202eb",
        "\ufeff",
        "a\ud800",
        "<b>",
        "a\\b",
        "`id`",
        "\u2028",
    ],
)
def test_bad_names_are_refused(name: str) -> None:
    with pytest.raises(InvalidAgentName):
        validate_agent_name(name)


def test_every_state_has_its_transitions_and_none_leads_to_itself() -> None:
    assert set(TRANSITIONS) == set(AgentState)
    for state, following in TRANSITIONS.items():
        assert following
        assert state not in following
