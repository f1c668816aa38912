"""What may be said of a channel; what is no valid one is the model's to judge."""

from typing import Any

import pytest
from pydantic import ValidationError

from roost.agents.channels.model import ALLOW_FROM_LIMIT, ID_LIMIT, TOKEN_LIMIT, Order
from roost.agents.channels.shape import ChannelConfiguration
from roost.core.sensitive import Sensitive


def order(**body: Any) -> Order:
    return ChannelConfiguration.model_validate(body).order()


@pytest.mark.parametrize(
    "body", [{}, {"unknown": 1}, {"botToken": None, "allowFrom": None}, {"botToken": "", "appToken": ""}]
)
def test_what_is_not_said(body: dict[str, Any]) -> None:
    assert order(**body) == Order()


def test_all_that_may_be_said() -> None:
    body = {"botToken": "b", "appToken": "a", "dmPolicy": "pairing", "allowFrom": ["1", "2"], "enabled": False}
    assert order(**body) == Order(Sensitive("b"), Sensitive("a"), "pairing", ["1", "2"], enabled=False)
    assert order(allowFrom=[]).allow_from == []


def test_the_longest() -> None:
    made = order(botToken="t" * TOKEN_LIMIT, allowFrom=["i" * ID_LIMIT] * ALLOW_FROM_LIMIT)
    assert made.allow_from is not None
    assert len(made.allow_from) == ALLOW_FROM_LIMIT


@pytest.mark.parametrize(
    "body",
    [
        {"botToken": "t" * (TOKEN_LIMIT + 1)},
        {"appToken": "t" * (TOKEN_LIMIT + 1)},
        {"botToken": "a\0"},
        {"botToken": 7},
        {"dmPolicy": "closed"},
        {"dmPolicy": ""},
        {"allowFrom": "1"},
        {"allowFrom": [""]},
        {"allowFrom": ["i" * (ID_LIMIT + 1)]},
        {"allowFrom": ["i"] * (ALLOW_FROM_LIMIT + 1)},
        {"allowFrom": [None]},
        {"enabled": "maybe"},
    ],
)
def test_what_is_refused(body: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        order(**body)
