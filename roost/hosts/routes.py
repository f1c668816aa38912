"""The table of routes: who may call what, at which address, and where it stands in the code."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fastapi import FastAPI
from fastapi.routing import APIRoute, iter_route_contexts

from roost.identity import door

JWT, GATEWAY, RELAY = "jwt", "gateway", "relay"
CREDENTIALS: Mapping[Any, Sequence[str]] = {
    door.service_caller: (JWT,),
    door.owner_caller: (JWT,),
    door.agent_caller: (JWT, GATEWAY),
    door.model_caller: (JWT, GATEWAY, RELAY),
}
_ADDRESSES = {JWT: "management", GATEWAY: "agent", RELAY: "relay"}


@dataclass(frozen=True)
class Operation:
    """One method of one path; `credentials` is empty where nobody is asked for any."""

    method: str
    path: str
    credentials: Sequence[str]
    handler: Callable[..., Any]
    in_schema: bool


def operations(app: FastAPI) -> Iterator[Operation]:
    """Every operation of the API, in the order of the routes."""
    for context in iter_route_contexts(app.routes):
        route = context.original_route
        if isinstance(route, APIRoute):
            calls = [dependency.call for dependency in route.dependant.dependencies]
            kinds = next((CREDENTIALS[call] for call in calls if call in CREDENTIALS), ())
            for method in sorted(route.methods or ()):
                yield Operation(method, context.path_format or "", kinds, route.endpoint, route.include_in_schema)


def table(app: FastAPI) -> Sequence[Mapping[str, Any]]:
    """A row an operation: method, path, credentials, addresses, handler."""
    return [
        {
            "method": operation.method,
            "path": operation.path,
            "credentials": list(operation.credentials),
            "addresses": [_ADDRESSES[kind] for kind in operation.credentials] or ["management"],
            "handler": f"{operation.handler.__module__}.{operation.handler.__name__}",
        }
        for operation in operations(app)
    ]
