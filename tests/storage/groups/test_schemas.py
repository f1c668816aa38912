"""Groups in the words of new clients and of old ones."""

from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import ValidationError

from roost.storage.content.model import ContentNetwork
from roost.storage.groups import schemas
from roost.storage.groups.model import Group

NOW = datetime(2026, 11, 21, 10, 29, 47, 355000, tzinfo=UTC)
GROUP = Group("g", "t", ContentNetwork.PUBLIC, "n", True, NOW, NOW)


def test_how_a_group_is_told() -> None:
    record = {"id": "g", "name": "n", "is_public": True, "created_at": "2026-11-21T10:29:47.355000Z"}
    assert schemas.record(GROUP).model_dump(mode="json") == record
    assert schemas.listed([GROUP], "t").model_dump(mode="json") == {"groups": [record], "next_page_token": "t"}
    assert schemas.listed([], None).next_page_token == ""


def test_how_old_clients_are_told() -> None:
    assert schemas.old_record(GROUP).model_dump(mode="json", by_alias=True) == {
        "id": "g",
        "user_id": "t",
        "name": "n",
        "createdAt": "2026-11-21T10:29:47.355000Z",
        "updatedAt": "2026-11-21T10:29:47.355000Z",
    }


def test_what_is_not_said() -> None:
    assert schemas.CreateGroupRequest(name="n").is_public is False
    change = schemas.UpdateGroupRequest.model_validate({})
    assert (change.name, change.is_public) == (None, None)


@pytest.mark.parametrize("body", [{}, {"name": ""}, {"name": "n" * 101}, {"name": "a\0"}, {"name": 1}, {"name": None}])
def test_bodies_that_are_refused(body: dict[str, Any]) -> None:
    for shape in (schemas.CreateGroupRequest, schemas.GroupNameRequest):
        with pytest.raises(ValidationError):
            shape.model_validate(body)


@pytest.mark.parametrize("query", [{"limit": "0"}, {"limit": "1001"}, {"offset": "-1"}, {"nameContains": "n" * 101}])
def test_lists_that_are_refused(query: dict[str, str]) -> None:
    with pytest.raises(ValidationError):
        schemas.LegacyGroupParameters.model_validate(query)
