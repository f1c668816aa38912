"""Examples in the description: one for each body, all valid."""

from collections.abc import Iterator
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from roost.http.openapi import examples
from roost.http.server.application import create_application
from roost.http.stack.address import HostAddresses
from roost.web.service_registry import ServiceRegistry


@pytest.fixture(scope="module")
def description() -> dict[str, Any]:
    return create_application(ServiceRegistry(), HostAddresses(public_port=8642)).openapi()


def bodies(description: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the JSON and form bodies of requests and of responses but errors."""
    for path, item in description["paths"].items():
        for method, operation in item.items():
            responses = [response for status, response in operation["responses"].items() if "200" <= status < "400"]
            for one in (operation.get("requestBody", {}), *responses):
                for kind, media in one.get("content", {}).items():
                    if kind in {"application/json", "multipart/form-data"}:
                        yield f"{method} {path}", media


def test_each_body_has_an_example_of_its_schema(description: dict[str, Any]) -> None:
    found = list(bodies(description))
    assert len(found) > 150
    for name, media in found:
        assert "example" in media, name
        schema = {**media["schema"], "components": description["components"]}
        Draft202012Validator(schema).validate(media["example"])


def test_examples_tell_of_the_same_objects(description: dict[str, Any]) -> None:
    paths = description["paths"]
    created = paths["/v0/agents"]["post"]["responses"]["201"]["content"]["application/json"]["example"]["agent"]
    shown = paths["/v0/agents/{agentId}"]["get"]["responses"]["200"]["content"]["application/json"]["example"]["agent"]
    assert created == shown
    assert created["url"].startswith(f"http://{created['agentId']}.agents.")


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "string", "examples": ["x"]}, "x"),
        ({"enum": ["idle", "running"]}, "running"),  # the shared value, where it is allowed
        ({"enum": ["idle", "busy"]}, "idle"),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, "running"),
        ({"type": "integer", "minimum": 3}, 3),
        ({}, "running"),
    ],
)
def test_values_come_from_the_schema_first(schema: dict[str, Any], value: object) -> None:
    media: dict[str, Any] = {"schema": {"type": "object", "properties": {"status": schema}}}
    examples.add_examples({"responses": {"200": {"content": {"application/json": media}}}}, {}, storage=False)
    assert media["example"] == {"status": value}
