"""Generate the OpenAPI 3.1 description at `/openapi`, with all statuses, from the routes and their callers."""

from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.openapi.utils import get_openapi
from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute
from pydantic import BaseModel
from pydantic.alias_generators import to_camel

from roost import __version__
from roost.http.openapi.examples import add_examples
from roost.http.stack import routes
from roost.http.stack.address import HostAddresses
from roost.http.stack.routes import ApiOperation
from roost.http.stack.url_map import AGENT_ADDRESS_PATHS, find_rule
from roost.identity import authenticator, credentials
from roost.web.errors import ERROR_CODE, ERROR_DETAIL, ERROR_FIELD
from roost.web.schemas import ErrorBody, LegacyErrorBody, ModelErrorBody, StorageErrorBody
from roost.web.url_rule import ErrorForm, HostKind, UrlFamily

_SCHEMES: dict[str, Any] = {
    "serviceJwt": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"},
    "gatewayToken": {"type": "http", "scheme": "bearer", "description": "On the agent's own address."},
    "gatewayQuery": {"type": "apiKey", "in": "query", "name": "token"},
    "gatewayCookie": {"type": "apiKey", "in": "cookie", "name": credentials.COOKIE},
    "sessionCookie": {"type": "apiKey", "in": "cookie", "name": credentials.SESSION_COOKIE},
    "gitPassword": {"type": "http", "scheme": "basic", "description": "Any name; the gateway token as password."},
    "platformToken": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT", "description": "An agent's, 1 hour."},
    routes.METRICS_SCHEME: {"type": "http", "scheme": "bearer", "description": "The setting `metrics_token`."},
}
_SECURITY: Mapping[str, Sequence[dict[str, list[str]]]] = {
    routes.JWT: [{"serviceJwt": []}],
    routes.GATEWAY: [{"gatewayToken": []}, {"gatewayQuery": []}, {"gatewayCookie": []}],
    routes.SESSION: [{"sessionCookie": []}],
    routes.BASIC: [{"gitPassword": []}],
    routes.BEARER: [{"gatewayToken": []}],
    routes.PLATFORM: [{"platformToken": []}],
    routes.RELAY: [],
    **{scope: [{"serviceJwt": [scope]}] for scope in authenticator.STORAGE_CALLERS},
}
_DESCRIPTION = (
    "Agents that live in containers, and storage by content.\n\nAn error response has its stable code in the header "
    f"`{ERROR_CODE}`, the path of the field at fault, if one is known, in `{ERROR_FIELD}`, and more about a malformed "
    f"request, as a JSON string, in `{ERROR_DETAIL}`. The docs list all codes."
)
_REASONS = {
    "400": "The request is malformed; `error` says where.",
    "401": "No credential, or one that is not accepted.",
    "403": "The credential or the plan does not allow it.",
    "404": "There is no such thing.",
    "405": "The path has other methods; see `Allow`.",
    "408": "The request came too slowly.",
    "409": "It conflicts with what is there.",
    "412": "`Tus-Resumable` names another version.",
    "413": "The body is too large.",
    "415": "The body is not JSON, or is compressed.",
    "416": "The range begins beyond the end.",
    "429": "Too many requests; see `Retry-After`.",
    "431": "The head of the request is too large.",
    "500": "Something failed; `error` says what.",
    "503": "Something that is needed is not available.",
    "504": "A service that is needed did not answer in time.",
}
ERROR_MODELS: Mapping[ErrorForm, type[BaseModel]] = {
    ErrorForm.AGENTS: ErrorBody,
    ErrorForm.STORAGE: StorageErrorBody,
    ErrorForm.LEGACY: LegacyErrorBody,
    ErrorForm.OPENAI: ModelErrorBody,
}
"""Schemas of the error bodies of each API."""
_METHODS_WITH_BODY = {"POST", "PUT", "PATCH"}


def operation_id(route: APIRoute) -> str:
    """Return the stable name of an operation, from which generators make the names of clients' methods."""
    return to_camel(route.name)


def install_openapi(app: FastAPI, addresses: HostAddresses) -> None:
    """Serve the description of `app`, which is generated and encoded on the first request."""
    encoded: list[bytes] = []

    def describe() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = _describe(app, addresses)
        return app.openapi_schema

    async def read_description(_: Request) -> Response:
        if not encoded:
            encoded.append(bytes(JSONResponse(app.openapi()).body))
        return Response(encoded[0], media_type="application/json")

    app.openapi = describe
    app.add_route("/openapi", read_description, include_in_schema=False)


def _describe(app: FastAPI, addresses: HostAddresses) -> dict[str, Any]:
    schema = get_openapi(
        title="Roost",
        version=__version__,
        description=_DESCRIPTION,
        routes=app.routes,
        servers=[{"url": addresses.agents_url}],
    )
    components = schema.setdefault("components", {})
    components["securitySchemes"] = _SCHEMES
    shapes = components.setdefault("schemas", {})
    for model in ERROR_MODELS.values():
        shapes |= _schemas_of(model)
    for name in ("HTTPValidationError", "ValidationError"):
        components["schemas"].pop(name, None)
    for operation in routes.list_operations(app):
        if operation.in_schema:
            described = schema["paths"][operation.path][operation.method.lower()]
            _complete(described, operation)
            rule = find_rule(operation.method, operation.path)
            is_storage = rule.family is UrlFamily.STORAGE
            add_examples(described, shapes, storage=is_storage)
            if is_storage:
                described["servers"] = [{"url": addresses.api_url}, {"url": addresses.uploads_url}]
            elif rule.hosts == frozenset({HostKind.AGENT}):
                described["servers"] = [_agent_server(addresses)]
        elif operation.sends is not None:
            _add_messages(schema, operation.path, operation.sends)
    for path, current in AGENT_ADDRESS_PATHS.items():
        schema["paths"][path] = {
            method: _describe_on_agent_address(operation, addresses)
            for method, operation in schema["paths"][current].items()
        }
    return schema


def _describe_on_agent_address(operation: Mapping[str, Any], addresses: HostAddresses) -> dict[str, Any]:
    """Describe an operation at the agent's own address, where the path has no agent."""
    return {
        **operation,
        "operationId": f"{operation['operationId']}OnAgentAddress",
        "parameters": [parameter for parameter in operation["parameters"] if parameter["name"] != "agentId"],
        "security": [choice for choice in operation["security"] if "serviceJwt" not in choice],
        "servers": [_agent_server(addresses)],
    }


def _agent_server(addresses: HostAddresses) -> dict[str, Any]:
    if addresses.agent_ports is not None:
        port = str(addresses.agent_ports[0])
        return {"url": addresses.port_origin("{port}"), "variables": {"port": {"default": port}}}
    return {"url": addresses.agent_origin("{agentId}"), "variables": {"agentId": {"default": "agent"}}}


def _schemas_of(model: type[BaseModel]) -> dict[str, Any]:
    """Return the schema of a model and of the models that it consists of, by name."""
    described = model.model_json_schema(mode="serialization", ref_template="#/components/schemas/{model}")
    return {**described.pop("$defs", {}), model.__name__: described}


def _add_messages(schema: dict[str, Any], path: str, shape: type[BaseModel]) -> None:
    """Describe a WebSocket as the GET of its path with the answer 101, which documents the messages."""
    schema["components"]["schemas"] |= _schemas_of(shape)
    content = {"application/json": {"schema": {"$ref": f"#/components/schemas/{shape.__name__}"}}}
    response = {
        "description": "With `Upgrade: websocket`: a stream of text messages of this shape.",
        "content": content,
    }
    schema["paths"][path]["get"]["responses"]["101"] = response


def _complete(described: dict[str, Any], operation: ApiOperation) -> None:
    """Add the accepted credentials and all error responses of an operation."""
    responses = described["responses"]
    responses.pop("422", None)
    if operation.method == "HEAD":
        responses["200"].pop("content", None)
    statuses = {"400", "431", "500"}
    if find_rule(operation.method, operation.path).is_rate_limited:
        statuses.add("429")
    described["x-roost-right"] = operation.right
    if operation.credentials:
        described["security"] = [choice for kind in operation.credentials for choice in _SECURITY[kind]]
        statuses |= {"401", "403", "503"}
    if "{" in operation.path:
        statuses.add("404")
    if operation.method in _METHODS_WITH_BODY:
        statuses |= {"404", "408", "409", "413", "415"}
    statuses |= {status for status in responses if status >= "400"}
    errors = ERROR_MODELS[find_rule(operation.method, operation.path).errors]
    for status in sorted(statuses):
        model = ErrorBody if status == "431" else errors  # the connection answers before the path is known
        content = {"application/json": {"schema": {"$ref": f"#/components/schemas/{model.__name__}"}}}
        responses[status] = {"content": content, **responses.get(status, {}), "description": _REASONS[status]}
