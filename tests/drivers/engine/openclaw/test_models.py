import json
from dataclasses import replace
from typing import Any

import pytest

from roost.drivers.engine.contract import GatewaySetup
from roost.drivers.engine.openclaw import config_file
from tests.drivers.engine.openclaw.test_config_file import SETUP


def start_config(
    user: dict[str, Any], setup: GatewaySetup = SETUP, former: GatewaySetup | None = None
) -> dict[str, Any]:
    """Return the configuration of a start with the user's file, after a former start if there is one."""
    existing = (
        {}
        if former is None
        else {config_file.PLATFORM_CONFIG: config_file.render_config(config_file.merge_config({}, former))}
    )
    return config_file.merge_config(user, replace(setup, existing=existing))


def primary(found: dict[str, Any]) -> str:
    return found["agents"]["defaults"]["model"]["primary"]


def choose(model: str) -> dict[str, Any]:
    return {"agents": {"defaults": {"model": {"primary": model}}}}


def test_the_platforms_former_default_is_replaced() -> None:
    later = replace(SETUP, models=["third", "first", "second"])
    assert primary(start_config(config_file.merge_config({}, SETUP), later, former=SETUP)) == "roost/third"


def test_the_users_choice_is_kept() -> None:
    later = replace(SETUP, models=["third", "first", "second"])
    assert primary(start_config(choose("roost/second"), later, former=SETUP)) == "roost/second"
    assert primary(start_config(choose("roost/second"), later)) == "roost/second"


def test_a_choice_that_is_not_served_is_replaced() -> None:
    assert primary(start_config(choose("roost/gone"), former=SETUP)) == "roost/first"


def test_a_choice_is_kept_and_offered_while_its_provider_cannot_be_queried() -> None:
    found = start_config(choose("roost/far/away"), replace(SETUP, all_models=False), former=SETUP)
    assert primary(found) == "roost/far/away"
    offered = [model["id"] for model in found["models"]["providers"]["roost"]["models"]]
    assert offered == ["first", "second", "far/away"]


@pytest.mark.parametrize("former", [b"\0", b"[]", b"{}", b'{"agents": 7}', json.dumps(choose("x")).encode()])
def test_any_former_configuration_is_accepted(former: bytes) -> None:
    found = config_file.merge_config(
        choose("roost/second"), replace(SETUP, existing={config_file.PLATFORM_CONFIG: former})
    )
    assert primary(found) == "roost/second"
