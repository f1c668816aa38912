from dataclasses import replace

import pytest

from roost.drivers.engine.hermes.models import USERS_CONFIG, default
from tests.drivers.engine.hermes.test_driver import SETUP


def chosen(config: str, *, all_models: bool = True) -> str | None:
    """What the managed scope says, None where it leaves the word to the user."""
    existing = {USERS_CONFIG: config.encode()}
    return default(replace(SETUP, existing=existing, all_models=all_models)).get("default")


@pytest.mark.parametrize(
    "config",
    [
        "model: second\n",
        "model: 'second' # mine\n",
        '# first\ndisplay:\n  default: first\nmodel:\n  # which\n\n  provider: custom\n  default: "second"\nx: 1\n',
        "model:\r\n  default: second\r\n",
        "model:\n- x\nmodel: second",
    ],
)
def test_a_choice_of_the_users_that_is_served_is_left_to_the_user(config: str) -> None:
    assert chosen(config) is None


@pytest.mark.parametrize(
    "config",
    [
        *("", "model:\n", "model: gone\n", "model: {default: second}\n", "models: second\n", "\0\ufffd{garbage: ["),
        "model:\nother:\n  default: second\n",
        "x:\n  model: second\n",
        "model:\n" + "  a: b\n" * 100_000,
        "model:\n  x:\n" * 100_000,
    ],
)
def test_otherwise_the_platform_chooses(config: str) -> None:
    assert chosen(config) == "first"


def test_a_choice_stays_while_its_provider_cannot_be_asked() -> None:
    assert chosen("model: gone\n", all_models=False) is None
    assert chosen("", all_models=False) == "first"
