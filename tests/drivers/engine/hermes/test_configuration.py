from dataclasses import replace

import pytest

from roost.drivers.engine.hermes.configuration import USERS_CONFIG, default_model
from tests.drivers.engine.hermes.test_driver import SETUP


def managed_model(config: str, *, all_models: bool = True) -> str | None:
    """Return the model in the managed scope, None if the user's choice is kept."""
    existing = {USERS_CONFIG: config.encode()}
    return default_model(replace(SETUP, existing=existing, all_models=all_models)).get("default")


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
def test_a_served_choice_of_the_user_is_kept(config: str) -> None:
    assert managed_model(config) is None


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
def test_otherwise_the_platforms_default_is_used(config: str) -> None:
    assert managed_model(config) == "first"


def test_a_choice_is_kept_while_its_provider_cannot_be_queried() -> None:
    assert managed_model("model: gone\n", all_models=False) is None
    assert managed_model("", all_models=False) == "first"
