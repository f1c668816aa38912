"""The description is valid OpenAPI 3.1 and tells the truth about callers and errors."""

from typing import Any

import pytest
from openapi_spec_validator import validate
from prometheus_client import CollectorRegistry

from roost.hosts.application import create_application
from roost.web.service_registry import ServiceRegistry


@pytest.fixture(scope="module")
def description() -> dict[str, Any]:
    return create_application(ServiceRegistry(), "http://agents.localhost:8642", {}, CollectorRegistry()).openapi()


def operations(description: dict[str, Any]) -> list[tuple[str, str, dict[str, Any]]]:
    return [
        (method, path, operation)
        for path, methods in description["paths"].items()
        for method, operation in methods.items()
    ]


def test_it_is_valid(description: dict[str, Any]) -> None:
    assert description["openapi"].startswith("3.1")
    validate(description)


def test_no_operation_answers_422_and_all_have_the_contracts_error(description: dict[str, Any]) -> None:
    for method, path, operation in operations(description):
        assert "422" not in operation["responses"], (method, path)
        assert "500" in operation["responses"]
        for status, response in operation["responses"].items():
            if status.startswith("4") and path.startswith("/v0") and not path.startswith("/v0/llm"):
                reference = response["content"]["application/json"]["schema"]["$ref"]
                assert reference == "#/components/schemas/Error"
    assert list(description["components"]["schemas"]["Error"]["properties"]) == ["error"]


@pytest.mark.parametrize(
    ("path", "fields"),
    [
        ("/v0/agents", None),
        ("/v0/llm/v1/chat/completions", {"message", "type", "param", "code"}),
        ("/v3/groups/{network}", {"code", "message"}),
        ("/groups", {"reason", "details"}),
        ("/pinning/pinByHash", {"reason", "details"}),
        ("/psa/pins", {"reason", "details"}),
    ],
)
def test_errors_have_the_shape_of_their_api(description: dict[str, Any], path: str, fields: set[str] | None) -> None:
    schemas = description["components"]["schemas"]
    responses = description["paths"][path]["post"]["responses"]
    errors = {status: response for status, response in responses.items() if status in {"400", "401", "413", "503"}}
    assert len(errors) == 4
    for response in errors.values():
        shape = schemas[response["content"]["application/json"]["schema"]["$ref"].rsplit("/", 1)[1]]
        error = shape["properties"]["error"]
        inner = schemas[error["$ref"].rsplit("/", 1)[1]]["properties"].keys() if "$ref" in error else None
        assert inner == fields


def test_callers_are_named(description: dict[str, Any]) -> None:
    paths = description["paths"]
    assert paths["/v0/agents"]["get"]["security"] == [{"serviceJwt": []}]
    kinds = [next(iter(choice)) for choice in paths["/v0/agents/{agentId}/logs"]["get"]["security"]]
    assert kinds == ["serviceJwt", "gatewayToken", "gatewayQuery", "gatewayCookie"]
    assert "security" not in paths["/healthz"]["get"]
    assert {
        name for path in paths.values() for op in path.values() for c in op.get("security", ()) for name in c
    } <= set(description["components"]["securitySchemes"])


def test_create_tells_of_the_agent_that_did_not_start(description: dict[str, Any]) -> None:
    responses = description["paths"]["/v0/agents"]["post"]["responses"]
    assert "StartFailure" in responses["500"]["content"]["application/json"]["schema"]["$ref"]
    assert {"201", "400", "401", "403", "413"} <= set(responses)
