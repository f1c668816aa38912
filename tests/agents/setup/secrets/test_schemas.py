"""Shapes of secrets: only the values of variables are shown."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import ValidationError

from roost.agents.setup.secrets import schemas
from roost.agents.setup.secrets.model import AttachedSecret, Secret, SecretKind, SecretWithAgents
from roost.core.sensitive import Sensitive

AT = datetime(2026, 11, 21, 10, 29, 47, 355000, tzinfo=UTC)
TOLD = "2026-11-21T10:29:47.355000Z"
SECRET = Secret("s", "t", "API_KEY", SecretKind.SECRET, 3, AT, AT)
VARIABLE = replace(SECRET, id="v", name="LEVEL", kind=SecretKind.VARIABLE)


def test_name_and_value_are_required_and_the_type_is_secret() -> None:
    body = schemas.CreateSecretRequest.model_validate({"name": "A", "value": "b"})
    assert (body.name, body.value, body.type) == ("A", "b", SecretKind.SECRET)
    for given in ({"name": "A"}, {"value": "b"}):
        with pytest.raises(ValidationError, match="Field required"):
            schemas.CreateSecretRequest.model_validate(given)
    with pytest.raises(ValidationError, match="Field required"):
        schemas.UpdateSecretRequest.model_validate({})


def test_a_value_is_in_no_log() -> None:
    assert "very-secret" not in repr(schemas.CreateSecretRequest(name="A", value="very-secret"))
    assert "very-secret" not in repr(schemas.UpdateSecretRequest(value="very-secret"))


@pytest.mark.parametrize(
    "body", [{"name": None}, {"name": "a\0"}, {"value": "a\0"}, {"value": "\ud800"}, {"value": 7}, {"type": "password"}]
)
def test_bodies_that_are_refused(body: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        schemas.CreateSecretRequest.model_validate({"name": "A", "value": "b"} | body)


@pytest.mark.parametrize("ids", [None, [], "s", [None], ["s" * 257], ["a\0"], ["s"] * 1001])
def test_lists_of_ids_that_are_refused(ids: object) -> None:
    with pytest.raises(ValidationError):
        schemas.AttachSecretsRequest.model_validate({"secretIds": ids})


def test_how_a_secret_is_told() -> None:
    assert schemas.secret_response(SECRET).model_dump(mode="json", by_alias=True) == {
        "success": True,
        "secret": {
            "id": "s",
            "userId": "t",
            "name": "API_KEY",
            "type": "secret",
            "createdAt": TOLD,
            "updatedAt": TOLD,
        },
    }


@pytest.mark.parametrize(
    ("secret", "value", "shown"),
    [
        (SECRET, Sensitive("very-secret"), None),  # not even if the model has it
        (SECRET, None, None),
        (VARIABLE, Sensitive("info"), "info"),
        (VARIABLE, Sensitive(""), ""),
        (VARIABLE, None, None),
    ],
)
def test_a_value_is_a_variable_s_alone(secret: Secret, value: Sensitive[str] | None, shown: str | None) -> None:
    item = schemas.secret_list_item(SecretWithAgents(secret, {"a1": "Ada"}, value))
    one = item.model_dump(mode="json", by_alias=True)
    assert one["agents"] == [{"agentId": "a1", "name": "Ada"}]
    assert one["value"] == shown


def test_the_secrets_of_an_agent() -> None:
    attached = [AttachedSecret(SECRET, synced=True), AttachedSecret(VARIABLE, synced=False)]
    records = [schemas.AgentSecretRecord.from_attached(one) for one in attached]
    assert [record.model_dump(mode="json", by_alias=True) for record in records] == [
        {"id": "s", "name": "API_KEY", "type": "secret", "createdAt": TOLD, "updatedAt": TOLD, "synced": True},
        {"id": "v", "name": "LEVEL", "type": "variable", "createdAt": TOLD, "updatedAt": TOLD, "synced": False},
    ]
