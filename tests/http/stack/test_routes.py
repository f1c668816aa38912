"""The table of routes knows every kind of caller, and WebSockets as well as methods."""

import inspect
import re
from collections.abc import Callable, Iterator
from typing import Annotated, Any, get_args

import pytest
from fastapi import APIRouter, FastAPI, WebSocket
from fastapi.routing import APIRoute, APIWebSocketRoute, iter_route_contexts
from starlette.requests import Request
from starlette.responses import Response

from roost.http.server.application import create_application
from roost.http.stack.address import HostAddresses
from roost.http.stack.routes import CREDENTIALS, UndeclaredRightError, list_operations, route_table
from roost.http.stack.url_map import find_rule
from roost.identity import authenticator
from roost.storage.compat.paths import PATH_REWRITES
from roost.web.schemas import ApiSchema
from roost.web.service_registry import ServiceRegistry
from roost.web.websocket import MessageSchema


class Shape(ApiSchema):
    text: str


def application() -> FastAPI:
    router = APIRouter(prefix="/v0/agents/{agentId}")

    @router.get("/open")
    async def free() -> None: ...

    @router.api_route("/own", methods=["PUT", "POST"])
    async def own(_: authenticator.AgentCaller) -> None: ...

    @router.post("/token")
    async def exchange(_: authenticator.ExchangeCaller) -> None: ...

    @router.websocket("/own")
    async def stream(socket: Annotated[WebSocket, MessageSchema(Shape)], _: authenticator.AgentVisit) -> None: ...

    app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None)
    app.include_router(router)
    return app


def test_a_row_for_each_method() -> None:
    rows = [(row["method"], row["path"], row["credentials"], row["addresses"]) for row in route_table(application())]
    base = "/v0/agents/{agentId}"
    assert rows == [
        ("GET", f"{base}/open", [], ["management"]),
        ("POST", f"{base}/own", ["jwt", "gateway"], ["management", "agent"]),
        ("PUT", f"{base}/own", ["jwt", "gateway"], ["management", "agent"]),
        ("POST", f"{base}/token", ["gateway bearer", "relay"], ["agent", "relay"]),
        ("WEBSOCKET", f"{base}/own", ["jwt", "gateway"], ["management", "agent"]),
    ]


def test_where_operations_are_that_ask_for_no_credential() -> None:
    app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None)
    for path in ("/v3/files/{file_id}/{token}", "/healthz"):
        app.get(path)(lambda: None)
    assert [row["addresses"] for row in route_table(app)] == [["storage"], ["management"]]


ADDED = (
    ("GET", "/v0/agents/{agentId}/new", None, "GET /v0/agents/{agentId}/new has no right"),
    ("POST", "/v0/agents/new", authenticator.ServiceCaller, "POST /v0/agents/new has no right"),
    ("GET", "/v0/agents/new", authenticator.ServiceCaller, "GET /v0/agents/new has no right"),
    ("GET", "/v0/templates/new", authenticator.ServiceCaller, "GET /v0/templates/new has no right"),
    ("PUT", "/v3/new", authenticator.FilesWriter, "PUT /v3/new has no right"),
    ("GET", "/anything/{else}", None, "GET /anything/{else} has no right"),
    ("POST", "/v0/usage", authenticator.ServiceCaller, "POST /v0/usage has no right"),
    ("DELETE", "/v0/agents/{agentId}", authenticator.AgentCaller, "the right manage contradicts jwt, gateway"),
    ("POST", "/v0/templates", authenticator.ServiceCaller, None),
    ("GET", "/v0/secrets", None, "the right read contradicts none"),
    ("GET", "/v0/public-templates", authenticator.ServiceCaller, "the right none contradicts jwt"),
    ("POST", "/v3/webhooks", authenticator.OrgReader, "the right credential contradicts org:read"),
    ("GET", "/v3/webhooks", authenticator.OrgWriter, "the right read contradicts org:write"),
    ("POST", "/v0/agents/{agentId}/console/exec", authenticator.ReaderCaller, "the right execute contradicts jwt"),
)


@pytest.mark.parametrize(("method", "path", "caller", "problem"), ADDED, ids=lambda value: str(value)[:40])
def test_no_server_starts_with_an_operation_without_a_right(
    method: str, path: str, caller: Any, problem: str | None
) -> None:
    """Nor with one whose callers cannot have the right that the URL map declares."""
    router = APIRouter()

    async def public() -> None: ...

    async def private(_: object) -> None: ...

    private.__annotations__["_"] = caller
    router.add_api_route(path, public if caller is None else private, methods=[method], response_model=None)
    if problem is None:
        create_application(ServiceRegistry(), HostAddresses(), router)
        return
    with pytest.raises(UndeclaredRightError) as refused:
        create_application(ServiceRegistry(), HostAddresses(), router)
    assert problem in str(refused.value)
    assert str(refused.value).startswith(f"{method} {path}")


def test_no_server_starts_with_a_socket_without_a_right() -> None:
    """Its path may have a right for GET; routes of other kinds count, too."""
    router = APIRouter()

    @router.websocket("/v0/agents/{agentId}/gateway-token/stream")
    async def stream(socket: WebSocket, _: authenticator.AgentVisit) -> None: ...

    with pytest.raises(UndeclaredRightError, match=r"^WEBSOCKET /v0/agents/\{agentId\}/gateway-token/stream "):
        create_application(ServiceRegistry(), HostAddresses(), router)

    async def page(_: Request) -> Response:
        return Response()

    plain = APIRouter()
    plain.add_route("/plain", page)
    with pytest.raises(UndeclaredRightError, match=r"^GET /plain "):
        create_application(ServiceRegistry(), HostAddresses(), plain)


def test_an_old_path_has_the_right_of_the_current_one() -> None:
    for row in PATH_REWRITES:
        for method in row.methods:
            paths = [path.replace("{network}", "private") for path in (row.path, row.current)]
            examples = [re.sub(r"{[\w:]+}", "0" * 32, path) for path in paths]
            old, current = (find_rule(method, path).find_right(method) for path in examples)
            assert old is current is not None, row


def test_a_stream_tells_the_shape_of_its_messages() -> None:
    assert [one.sends for one in list_operations(application())] == [None, None, None, None, Shape]


@pytest.mark.parametrize("name", [name for name in dir(authenticator) if re.search(r"\w(Caller|Visit)$", name)])
def test_every_kind_of_caller_is_in_the_table(name: str) -> None:
    (marker,) = get_args(getattr(authenticator, name))[1:]
    assert CREDENTIALS[marker.dependency]


def test_handlers_and_their_dependencies_run_without_a_thread() -> None:
    app = create_application(ServiceRegistry(), HostAddresses(public_port=8642))
    routes = [context.original_route for context in iter_route_contexts(app.routes)]
    handlers = [route for route in routes if isinstance(route, APIRoute | APIWebSocketRoute)]
    assert len(handlers) > 100
    in_threads = {call for route in handlers for call in _calls(route.dependant) if not _is_async(call)}
    assert not in_threads


def _calls(dependant: Any) -> Iterator[Callable[..., Any]]:
    yield dependant.call
    for dependency in dependant.dependencies:
        yield from _calls(dependency)


def _is_async(call: Callable[..., Any]) -> bool:
    return inspect.iscoroutinefunction(call) or inspect.isasyncgenfunction(call)
