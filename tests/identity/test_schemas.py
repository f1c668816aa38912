"""Keys in the requests and responses of the storage clients."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import ValidationError

from roost.core.sensitive import Sensitive
from roost.identity import schemas
from roost.identity.errors import InvalidPermissions
from roost.identity.model import ApiKey, IssuedApiKey
from roost.identity.schemas import CreateKeyRequest, KeyPermissions

NOW = datetime(2026, 11, 21, 10, 29, 47, 355000, tzinfo=UTC)
TOLD = "2026-11-21T10:29:47.355000Z"
KEY = ApiKey("i", "t", "n", frozenset({"org:read", "org:files:write"}), NOW, NOW, None, "handle", None, 5, 2)


def scopes(**given: Any) -> set[str]:
    return set(KeyPermissions.model_validate(given).scopes())


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({"admin": True}, set()),
        ({"admin": True, "resources": ["org:files:read"]}, set()),
        ({"resources": ["org:files:read", "org:files:read"]}, {"org:files:read"}),
        ({"endpoints": {"data": {"pinList": True}}}, {"org:files:read"}),
        ({"endpoints": {"pinning": {"unpin": True, "pinList": False}}}, {"org:files:write"}),
        (
            {"endpoints": {"pinning": {"pinFileToIPFS": True}, "data": {"pinList": True}}},
            {"org:files:read", "org:files:write"},
        ),
        ({"endpoints": {"psa": {"pins": {"addPinObject": True}}}}, {"org:files:write"}),
        (
            {"resources": ["org:groups:read"], "endpoints": {"data": {"pinList": True}}},
            {"org:groups:read", "org:files:read"},
        ),
    ],
)
def test_permissions_become_scopes(given: dict[str, Any], found: set[str]) -> None:
    assert scopes(**given) == found


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"admin": False},
        {"resources": []},
        {"endpoints": {}},
        {"endpoints": {"data": {"pinList": False}}},
        {"endpoints": {"data": {"unknown": True}}},
        {"endpoints": {"data": {"unknown": False}}},
        {"endpoints": {"data": {"pinList": "true"}}},
        {"endpoints": {"data": {"pinList": 1}}},
        {"endpoints": {"data": {"pinList": None}}},
        {"endpoints": {"data": []}},
        {"endpoints": {"a": {"b": {"c": {"d": {"pinList": True}}}}}},
    ],
)
def test_permissions_that_say_nothing_or_too_much(given: dict[str, Any]) -> None:
    with pytest.raises(InvalidPermissions):
        scopes(**given)


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"keyName": "n"},
        {"keyName": "", "permissions": {}},
        {"keyName": "n" * 101, "permissions": {}},
        {"keyName": "a\0", "permissions": {}},
        {"keyName": "n", "permissions": []},
        {"keyName": "n", "permissions": {"resources": ["s"] * 101}},
        {"keyName": "n", "permissions": {}, "maxUses": 0},
        {"keyName": "n", "permissions": {}, "maxUses": 2**31},
        {"keyName": "n", "permissions": {}, "maxUses": 1.5},
    ],
)
def test_bodies_that_are_refused(body: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        CreateKeyRequest.model_validate(body)


def test_a_new_key_is_shown_this_once_and_not_in_logs() -> None:
    made = schemas.issued_key_record(IssuedApiKey(Sensitive("token"), "handle", Sensitive("secret")))
    told = {"JWT": "token", "pinata_api_key": "handle", "pinata_api_secret": "secret"}
    assert made.model_dump(by_alias=True) == told
    assert "token" not in repr(made)
    assert "secret'" not in repr(made)


def test_how_keys_are_told() -> None:
    (record,) = schemas.key_list([KEY], 7).model_dump(mode="json", by_alias=True)["keys"]
    assert record == {
        "id": "i",
        "name": "n",
        "key": "handle",
        "max_uses": 5,
        "uses": 2,
        "user_id": "t",
        "scopes": {"admin": False, "resources": ["org:files:write", "org:read"]},
        "revoked": False,
        "createdAt": TOLD,
        "updatedAt": TOLD,
    }
    assert schemas.key_list([], 7).count == 7


def test_keys_of_other_kinds() -> None:
    later = NOW.replace(hour=11)
    keys = [replace(KEY, scopes=frozenset()), replace(KEY, handle=None), replace(KEY, revoked_at=later)]
    admin, unnamed, revoked = schemas.key_list(keys, 3).keys
    assert admin.scopes.admin is True
    assert unnamed.key == "i"
    assert (revoked.revoked, revoked.updated_at) == (True, later)
