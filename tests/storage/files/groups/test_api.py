"""Schemas of the API of groups."""

from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import ValidationError

from roost.storage.content.model import ContentNetwork
from roost.storage.files.groups import api
from roost.storage.files.groups.model import Group

NOW = datetime(2026, 11, 21, 10, 29, 47, 355000, tzinfo=UTC)
GROUP = Group("g", "t", ContentNetwork.PUBLIC, "n", True, NOW, NOW)


def test_the_record_of_a_group() -> None:
    record = {"id": "g", "name": "n", "is_public": True, "created_at": "2026-11-21T10:29:47.355000Z"}
    assert api.GroupRecord(**vars(GROUP)).model_dump(mode="json") == record


def test_defaults_of_requests() -> None:
    assert api.CreateGroupRequest(name="n").is_public is False
    change = api.UpdateGroupRequest.model_validate({})
    assert (change.name, change.is_public) == (None, None)


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"name": ""},
        {"name": "n" * 101},
        {"name": "a\0"},
        {"name": 1},
        {"name": None},
        {"name": "n", "is_public": "no"},
    ],
)
def test_bodies_that_are_refused(body: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        api.CreateGroupRequest.model_validate(body)
