"""The table of routes: who may call what, at which address, and where it stands in the code."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fastapi import FastAPI
from fastapi.routing import APIRoute

from roost.identity import door

JWT, GATEWAY, RELAY = "jwt", "gateway", "relay"
CREDENTIALS: Mapping[Any, Sequence[str]] = {
    door.service_caller: (JWT,),
    door.owner_caller: (JWT,),
    door.agent_caller: (JWT, GATEWAY),
    door.model_caller: (JWT, GATEWAY, RELAY),
}
_ADDRESSES = {JWT: "management", GATEWAY: "agent", RELAY: "relay"}


def credentials(route: APIRoute) -> Sequence[str]:
    """The kinds of credential that a route takes; none for one that is open."""
    for dependency in route.dependant.dependencies:
        if dependency.call in CREDENTIALS:
            return CREDENTIALS[dependency.call]
    return ()


def api_routes(app: FastAPI) -> Iterator[tuple[str, APIRoute]]:
    """Each method and route."""
    for route in app.routes:
        if isinstance(route, APIRoute):
            for method in sorted(route.methods or ()):
                yield method, route


def table(app: FastAPI) -> Sequence[Mapping[str, Any]]:
    """A row a route: method, path, credentials, addresses, handler."""
    return [
        {
            "method": method,
            "path": route.path_format,
            "credentials": list(credentials(route)),
            "addresses": [_ADDRESSES[kind] for kind in credentials(route)] or ["management"],
            "handler": f"{route.endpoint.__module__}.{route.endpoint.__name__}",
        }
        for method, route in api_routes(app)
    ]
