"""The description is valid OpenAPI 3.1 and tells the truth about callers and errors."""

import re
from collections.abc import Iterator
from typing import Annotated, Any, get_args

import pytest
from fastapi import FastAPI
from fastapi.routing import APIRoute, iter_route_contexts
from openapi_spec_validator import validate
from pydantic import BaseModel, TypeAdapter, ValidationError

from roost.http.server.application import create_application
from roost.http.stack.address import HostAddresses
from roost.web.service_registry import ServiceRegistry

MISTYPED = {"boolean": ("true", 1), "integer": ("1", True), "number": ("1", True)}


@pytest.fixture(scope="module")
def app() -> FastAPI:
    return create_application(ServiceRegistry(), HostAddresses(public_port=8642))


@pytest.fixture(scope="module")
def description(app: FastAPI) -> dict[str, Any]:
    return app.openapi()


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
            assert status < "400" or response["description"].endswith("."), (method, path, status)
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


def test_errors_of_metrics_are_json(description: dict[str, Any]) -> None:
    metrics = description["paths"]["/metrics"]["get"]
    assert list(metrics["responses"]["200"]["content"]) == ["text/plain"]
    assert all(list(metrics["responses"][status]["content"]) == ["application/json"] for status in ("401", "404"))
    assert metrics["security"] == [{"metricsToken": []}]


def test_every_request_that_takes_a_body_describes_it(description: dict[str, Any]) -> None:
    without = {
        path
        for method, path, operation in operations(description)
        if method in {"post", "put", "patch"} and "requestBody" not in operation
    }
    verbs = (
        "retry",
        "run",
        "all",
        "approve",
        "rotate",
        "token",
        "access_tokens",
        "secret",
        "redeliver",
        "test",
        "sync",
        "sign-in-link",
        "verify",
    )
    assert {path for path in without if not path.endswith(verbs)} == {
        "/v3/groups/{network}/{id}/ids/{file_id}",
        "/v3/pinata/keys/{key}",
        "/v3/x402/payment_instructions/{id}/cids/{cid}",
        "/v3/vectorize/files/{file_id}",
        "/v3/vectorize/groups/{id}/agents/{agentId}",
    }


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


def test_bodies_take_numbers_and_booleans_of_their_type_only(app: FastAPI) -> None:
    """Otherwise the description would be wrong, and `true` would be the number 1."""
    checked = 0
    for model in set(request_models(app)):
        for field in model.model_fields.values():
            if field.annotation is Any:
                continue  # its service reads the value
            # The type is made of values, which only a type checker forbids.
            annotation: Any = Annotated[field.annotation, "with its limits", *field.metadata]  # pyright: ignore[reportInvalidTypeForm]
            adapter = TypeAdapter[Any](annotation)
            schema = adapter.json_schema()
            kinds = {one["type"] for one in (schema, *schema.get("anyOf", ())) if "type" in one}
            for value in (value for kind in kinds & MISTYPED.keys() for value in MISTYPED[kind]):
                checked += 1
                with pytest.raises(ValidationError):
                    adapter.validate_python(value)
    assert checked > 15


def request_models(app: FastAPI) -> Iterator[type[BaseModel]]:
    routes = (context.original_route for context in iter_route_contexts(app.routes))
    for route in routes:
        if isinstance(route, APIRoute) and route.body_field is not None:
            yield from models_in(route.body_field.field_info.annotation)


def models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
        for field in annotation.model_fields.values():
            yield from models_in(field.annotation)
    for argument in get_args(annotation):
        yield from models_in(argument)
