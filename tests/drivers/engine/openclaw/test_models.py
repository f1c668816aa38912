import json
from dataclasses import replace
from typing import Any

import pytest

from roost.drivers.engine.contract import GatewaySetup
from roost.drivers.engine.openclaw import config
from tests.drivers.engine.openclaw.test_config import SETUP


def started(user: dict[str, Any], setup: GatewaySetup = SETUP, former: GatewaySetup | None = None) -> dict[str, Any]:
    """The configuration that a start makes of the user's, after a former start or the first."""
    existing = {} if former is None else {config.PLATFORM_CONFIG: config.render(config.fresh(former))}
    return config.merge(user, replace(setup, existing=existing))


def primary(found: dict[str, Any]) -> str:
    return found["agents"]["defaults"]["model"]["primary"]


def chose(model: str) -> dict[str, Any]:
    return {"agents": {"defaults": {"model": {"primary": model}}}}


def test_what_the_platform_chose_gives_way_to_a_new_default() -> None:
    later = replace(SETUP, models=["third", "first", "second"])
    assert primary(started(config.fresh(SETUP), later, former=SETUP)) == "roost/third"


def test_what_the_user_chose_stays() -> None:
    later = replace(SETUP, models=["third", "first", "second"])
    assert primary(started(chose("roost/second"), later, former=SETUP)) == "roost/second"
    assert primary(started(chose("roost/second"), later)) == "roost/second"


def test_a_choice_that_is_served_no_more_gives_way() -> None:
    assert primary(started(chose("roost/gone"), former=SETUP)) == "roost/first"


def test_a_choice_stays_and_is_offered_while_its_provider_cannot_be_asked() -> None:
    found = started(chose("roost/far/away"), replace(SETUP, all_models=False), former=SETUP)
    assert primary(found) == "roost/far/away"
    offered = [model["id"] for model in found["models"]["providers"]["roost"]["models"]]
    assert offered == ["first", "second", "far/away"]


@pytest.mark.parametrize("former", [b"\0", b"[]", b"{}", b'{"agents": 7}', json.dumps(chose("x")).encode()])
def test_whatever_stands_in_place_of_the_former_configuration(former: bytes) -> None:
    found = config.merge(chose("roost/second"), replace(SETUP, existing={config.PLATFORM_CONFIG: former}))
    assert primary(found) == "roost/second"
