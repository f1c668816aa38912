"""The table of routes: who may call what, at which address, and where it stands in the code."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, get_type_hints

from fastapi import FastAPI
from fastapi.routing import APIRoute, APIWebSocketRoute, iter_route_contexts
from pydantic import BaseModel
from starlette.routing import compile_path

from roost.core.right import Right
from roost.http.stack.url_map import find_rule
from roost.identity import authenticator
from roost.identity.caller import CallerKind
from roost.identity.rights import SCOPE_ACTIONS, TOKEN_RIGHTS
from roost.identity.sessions import api as sessions
from roost.storage.compat.paths import PATH_REWRITES
from roost.web.url_rule import WEBSOCKET, HostKind, UrlFamily
from roost.web.websocket import MessageSchema

JWT, GATEWAY, PLATFORM, RELAY = "jwt", "gateway", "platform", "relay"
SESSION = "session"
"""A browser session alone; wherever a JWT counts, a session of the dashboard does, too."""
BASIC = "basic"
"""A gateway token as the password of HTTP Basic."""
BEARER = "gateway bearer"
"""A gateway token in the `Authorization` header, and in no other place."""
METRICS_SCHEME = "metricsToken"
"""Name of the credential of `/metrics` in the OpenAPI description."""
CREDENTIALS: Mapping[Any, Sequence[str]] = {
    authenticator.service_caller: (JWT,),
    sessions.session_caller: (SESSION,),
    authenticator.owner_caller: (JWT,),
    authenticator.tenant_caller: (JWT, PLATFORM),
    authenticator.tenant_visit: (JWT,),
    authenticator.agent_caller: (JWT, GATEWAY),
    authenticator.agent_visit: (JWT, GATEWAY),
    authenticator.reader_caller: (JWT, GATEWAY, PLATFORM),
    authenticator.inside_caller: (JWT, GATEWAY, RELAY),
    authenticator.known_caller: (JWT, GATEWAY, PLATFORM, RELAY),
    authenticator.self_caller: (GATEWAY, PLATFORM, RELAY),
    authenticator.bearer_caller: (JWT, BEARER),
    authenticator.exchange_caller: (BEARER, RELAY),
    authenticator.model_caller: (JWT, GATEWAY, RELAY),
    authenticator.git_caller: (BASIC,),
    **{caller: (scope,) for scope, caller in authenticator.STORAGE_CALLERS.items()},
    **{caller: (scope, PLATFORM, RELAY) for scope, caller in authenticator.AGENT_STORAGE_CALLERS.items()},
}
_ADDRESSES = {
    JWT: ("management",),
    SESSION: ("dashboard",),
    GATEWAY: ("agent",),
    BASIC: ("management", "agent"),
    BEARER: ("agent",),
    PLATFORM: ("management",),
    RELAY: ("relay",),
    **dict.fromkeys(authenticator.STORAGE_CALLERS, ("storage",)),
}


_RIGHTS_BY_TOKEN = {
    **dict.fromkeys((GATEWAY, BASIC, BEARER), TOKEN_RIGHTS[CallerKind.GATEWAY]),
    PLATFORM: TOKEN_RIGHTS[CallerKind.PLATFORM],
    RELAY: TOKEN_RIGHTS[CallerKind.RELAY],
}


class UndeclaredRightError(Exception):
    """An operation lacks a right in the URL map, or has one that no caller of it can have."""


@dataclass(frozen=True)
class ApiOperation:
    """One method of one path; a WebSocket counts as a method.

    `credentials` is empty for public operations; `sends` is the schema of a WebSocket's messages. `right` is what a
    credential needs.
    """

    method: str
    path: str
    credentials: Sequence[str]
    handler: Callable[..., Any]
    in_schema: bool
    right: Right | None
    sends: type[BaseModel] | None = None


def list_operations(app: FastAPI) -> Iterator[ApiOperation]:
    """List the operations of the API, in the order of the routes."""
    for context in iter_route_contexts(app.routes):
        route = context.original_route
        path = context.path_format or ""
        if isinstance(route, APIRoute):
            for method in sorted(route.methods or ()):
                right = _find_right(method, path)
                yield ApiOperation(method, path, _credentials(route), route.endpoint, route.include_in_schema, right)
        elif isinstance(route, APIWebSocketRoute):
            right, sent = _find_right(WEBSOCKET, path), _sent(route.endpoint)
            yield ApiOperation(WEBSOCKET, path, _credentials(route), route.endpoint, False, right, sent)


def route_table(app: FastAPI) -> Sequence[Mapping[str, Any]]:
    """Return method, path, credentials, addresses, right and handler of each operation, at its old paths too."""
    rows = {
        (operation.method, operation.path): {
            "method": operation.method,
            "path": operation.path,
            "credentials": list(operation.credentials),
            "addresses": list(dict.fromkeys(chain.from_iterable(map(_ADDRESSES.__getitem__, operation.credentials))))
            or [_address_without_credential(operation)],
            "right": operation.right,
            "handler": f"{operation.handler.__module__}.{operation.handler.__name__}",
        }
        for operation in list_operations(app)
    }
    old = [
        {**rows[method, row.current], "path": compile_path(row.path)[1]}
        for row in PATH_REWRITES
        for method in sorted(row.methods)
        if (method, row.current) in rows
    ]
    return [*rows.values(), *old]


def check_rights(app: FastAPI) -> None:
    """Check that the URL map names the path of each operation, with a right that its callers can have.

    Raises UndeclaredRightError.
    """
    for context in iter_route_contexts(app.routes):
        route, path = context.original_route, context.path_format or ""
        credentials = _credentials(route) if isinstance(route, APIRoute | APIWebSocketRoute) else ()
        for method in sorted(getattr(route, "methods", None) or (WEBSOCKET,)):
            right = _find_right(method, path)
            if right is None or not _is_named(method, path):
                raise UndeclaredRightError(f"{method} {path} has no right in the URL map")
            if not _fits(right, credentials):
                raise UndeclaredRightError(
                    f"{method} {path}: the right {right} contradicts {', '.join(credentials) or 'none'}"
                )


def _find_right(method: str, template: str) -> Right | None:
    return find_rule(method, _example_path(template)).find_right(method)


def _example_path(template: str) -> str:
    """Return a path of a route; its ids are hexadecimal digits, as some rows of the URL map demand."""
    return re.sub(r"{\w+}", "0" * 32, template.replace("{network}", "public"))


def _is_named(method: str, template: str) -> bool:
    """Return whether the row of a route has each word of its path, and does not just match anything there."""
    path, words = _example_path(template), filter(None, re.split(r"{\w+}|/", template))
    rule = find_rule(method, path)
    return not any(rule.matches(method, path.replace(f"/{word}", "/~", 1)) for word in words)


def _fits(right: Right, credentials: Sequence[str]) -> bool:
    """Return whether the callers of a handler can have the right, and need one."""
    if {*credentials} <= {SESSION, authenticator.ANY_SCOPE}:
        return right is Right.NONE
    if not all(right in _RIGHTS_BY_TOKEN.get(kind, Right) for kind in credentials):
        return False
    actions = {kind.rpartition(":")[2] for kind in credentials if kind.startswith("org:")}
    return right is not Right.NONE and actions <= {SCOPE_ACTIONS[right]}


def _address_without_credential(operation: ApiOperation) -> str:
    rule = find_rule(operation.method, operation.path)
    if rule.hosts == frozenset({HostKind.AGENT}):
        return "agent"
    if rule.needs_dashboard:
        return "dashboard"
    return "storage" if rule.family is UrlFamily.STORAGE else "management"


def _credentials(route: APIRoute | APIWebSocketRoute) -> Sequence[str]:
    calls = [dependency.call for dependency in route.dependant.dependencies]
    return next((CREDENTIALS[call] for call in calls if call in CREDENTIALS), ())


def _sent(handler: Callable[..., Any]) -> type[BaseModel] | None:
    """Return the message schema of the signature: `socket: Annotated[WebSocket, Sends(Shape)]`."""
    hints = get_type_hints(handler, include_extras=True).values()
    notes = [note for hint in hints for note in getattr(hint, "__metadata__", ())]
    return next((note.shape for note in notes if isinstance(note, MessageSchema)), None)
