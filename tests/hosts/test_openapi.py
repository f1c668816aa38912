"""The description is valid OpenAPI 3.1 and tells the truth about callers and errors."""

import re
from typing import Any

import pytest
from openapi_spec_validator import validate
from prometheus_client import CollectorRegistry

from roost.hosts.address import HostAddresses
from roost.hosts.application import create_application
from roost.web.service_registry import ServiceRegistry


@pytest.fixture(scope="module")
def description() -> dict[str, Any]:
    return create_application(ServiceRegistry(), HostAddresses(public_port=8642), {}, CollectorRegistry()).openapi()


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
                assert reference == "#/components/schemas/ErrorBody"
    assert list(description["components"]["schemas"]["ErrorBody"]["properties"]) == ["error"]


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


def test_operations_have_short_unique_names(description: dict[str, Any]) -> None:
    names = [operation["operationId"] for _, _, operation in operations(description)]
    assert len(names) == len(set(names))
    assert all(re.fullmatch(r"[a-z]+([A-Z][a-z0-9]+)+", name) for name in names)


def test_successes_have_a_schema(description: dict[str, Any]) -> None:
    without = {
        (method, path)
        for method, path, operation in operations(description)
        for status, response in operation["responses"].items()
        if status in {"200", "201", "202"}
        and not all(kind.get("schema") for kind in response.get("content", {"": {}}).values())
    }
    assert without == {("head", "/v3/files/{file_id}/{token}"), ("delete", "/psa/pins/{requestid}")}  # have no body


def test_each_path_names_the_addresses_that_serve_it(description: dict[str, Any]) -> None:
    paths = description["paths"]
    assert description["servers"] == [{"url": "http://agents.localhost:8642"}]
    assert [server["url"] for server in paths["/v3/files"]["post"]["servers"]] == [
        "http://api.localhost:8642",
        "http://uploads.localhost:8642",
    ]
    assert "servers" not in paths["/v0/agents"]["get"]
    for path, method in (("/v0/logs", "get"), ("/v0/platform/token", "post")):
        operation = paths[path][method]
        assert operation["servers"][0]["url"] == "http://{agentId}.agents.localhost:8642"
        assert {name for choice in operation["security"] for name in choice} <= {
            "gatewayToken",
            "gatewayQuery",
            "gatewayCookie",
        }


@pytest.mark.parametrize(
    ("path", "model"),
    [
        ("/v0/agents", "ErrorBody"),
        ("/v3/files", "StorageErrorBody"),
        ("/groups", "LegacyErrorBody"),
        ("/psa/pins", "LegacyErrorBody"),
        ("/v0/llm/v1/chat/completions", "ModelErrorBody"),
    ],
)
def test_errors_have_the_form_of_their_path(description: dict[str, Any], path: str, model: str) -> None:
    response = description["paths"][path]["post"]["responses"]["401"]
    assert response["content"]["application/json"]["schema"] == {"$ref": f"#/components/schemas/{model}"}
