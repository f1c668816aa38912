"""Path routes: how they are checked, and which one a path belongs to. Pure."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import unquote_to_bytes

from roost.core.problem import InvalidInput
from roost.drivers.runtime.contract import WARDEN_PORTS


class InvalidRoutes(InvalidInput):
    message = "Invalid routes"


class AmbiguousPath(InvalidInput):
    """A program could read the path as one that belongs to another route."""

    message = "Ambiguous path"


ROUTE_LIMIT = 10
PREFIX_LIMIT = 200
LOWEST_PORT, HIGHEST_PORT = 1025, 65535
GATEWAY_PORT = 18789
"""The gateway's port of the contract, whichever port an engine uses."""
_PREFIX = re.compile(r"(/[A-Za-z0-9._~-]+)*", re.ASCII)
_PLATFORM = re.compile(r"/v0(/.*)?", re.IGNORECASE)


@dataclass(frozen=True)
class PathRoute:
    """A prefix of an agent's address that leads to a port in its container.

    prefix: without a slash at its end, "" for all paths. is_protected: it needs the gateway token.
    """

    prefix: str
    port: int
    is_protected: bool = True


def parse_prefix(text: str, field: str = "pathPrefix") -> str:
    """Return a prefix without a slash at its end. Raises InvalidRoutes."""
    prefix = text.removesuffix("/")
    if len(text) > PREFIX_LIMIT or not text.startswith("/") or not _PREFIX.fullmatch(prefix):
        raise InvalidRoutes(
            f"pathPrefix must begin with / and have segments of letters, digits and . _ ~ - only, at most "
            f"{PREFIX_LIMIT} characters, got {text[:PREFIX_LIMIT]!r}",
            field=field,
        )
    if any(segment in {".", ".."} for segment in prefix.split("/")):
        raise InvalidRoutes("pathPrefix must not contain the segments . and ..", field=field)
    if _PLATFORM.fullmatch(prefix):
        raise InvalidRoutes("pathPrefix /v0 belongs to the platform", field=field)
    return prefix


def check_port(port: int, gateway_port: int = GATEWAY_PORT, field: str = "port") -> int:
    """Return a port on which a program of an agent may serve. Raises InvalidRoutes."""
    if not LOWEST_PORT <= port <= HIGHEST_PORT:
        raise InvalidRoutes(f"port must be from {LOWEST_PORT} to {HIGHEST_PORT}, got {port}", field=field)
    if port in {gateway_port, GATEWAY_PORT}:
        raise InvalidRoutes(f"port {port} is the gateway's own", field=field)
    if port in WARDEN_PORTS:
        raise InvalidRoutes(
            f"port {port} is Roost's own in the container; choose another from {LOWEST_PORT} to {HIGHEST_PORT}",
            field=field,
        )
    return port


def check_routes(routes: Sequence[PathRoute]) -> Sequence[PathRoute]:
    """Return the routes, longest prefix first. Raises InvalidRoutes for too many, and for a prefix twice."""
    if len(routes) > ROUTE_LIMIT:
        raise InvalidRoutes(f"An agent can have at most {ROUTE_LIMIT} routes, got {len(routes)}", field="mappings")
    prefixes = [route.prefix for route in routes]
    for index, prefix in enumerate(prefixes):
        if prefix in prefixes[:index]:
            raise InvalidRoutes(f"pathPrefix {prefix or '/'} occurs twice", field=f"mappings.{index}.pathPrefix")
    return sorted(routes, key=lambda route: (-len(route.prefix), route.prefix))


def find_route(routes: Sequence[PathRoute], path: bytes) -> PathRoute | None:
    """Return the route of a request's path, None if it is the gateway's; `routes` begin with the longest prefix.

    Raises AmbiguousPath if a program that decodes or normalizes the path would find it below another route.
    """
    found = _longest(routes, path)
    if b"%" in path or b"//" in path or b"/." in path or b"\\" in path or b";" in path:
        for form in {_normalize(path), _normalize(unquote_to_bytes(path))}:
            if _longest(routes, form) != found:
                raise AmbiguousPath
    return found


def _longest(routes: Sequence[PathRoute], path: bytes) -> PathRoute | None:
    for route in routes:
        prefix = route.prefix.encode()
        if path.startswith(prefix) and path[len(prefix) : len(prefix) + 1] in {b"", b"/"}:
            return route
    return None


def _normalize(path: bytes) -> bytes:
    """Return the path as lenient programs read it: without empty and dot segments, and without parameters."""
    kept: list[bytes] = []
    for segment in path.replace(b"\\", b"/").split(b"/"):
        name = segment.partition(b";")[0]
        if name == b"..":
            del kept[-1:]
        elif name not in {b"", b"."}:
            kept.append(name)
    return b"".join(b"/" + name for name in kept)
