"""The URL map: each row by example, and every operation of the API on the addresses that its callers use."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute, iter_route_contexts

from roost.core.right import Right
from roost.http.server.application import create_application
from roost.http.stack.address import HostAddresses
from roost.http.stack.host_router import _keep_slashes, is_plain
from roost.http.stack.routes import route_table
from roost.http.stack.url_map import URL_MAP, find_rule, is_platform_target
from roost.web.schemas import SlashText
from roost.web.service_registry import ServiceRegistry
from roost.web.url_rule import WEBSOCKET, ErrorForm, HostKind, UrlFamily

ID = "00000000-0000-4000-8000-000000000000"
MIB = 1024**2


@pytest.mark.parametrize(
    ("request_line", "family", "form", "size"),
    [
        ("GET /v0/agents", UrlFamily.AGENTS, ErrorForm.AGENTS, MIB),
        ("POST /v0/agents/a1/files/upload", UrlFamily.AGENTS, ErrorForm.AGENTS, 16 * MIB),
        ("POST /v0/files/upload", UrlFamily.AGENTS, ErrorForm.AGENTS, 16 * MIB),
        ("PUT /v0/agents/a1/files/content", UrlFamily.AGENTS, ErrorForm.AGENTS, None),
        ("GET /v0/files/content", UrlFamily.AGENTS, ErrorForm.AGENTS, MIB),
        ("POST /v0/agents/a1/x/files/upload", UrlFamily.AGENTS, ErrorForm.AGENTS, MIB),
        ("POST /v0/skills", UrlFamily.AGENTS, ErrorForm.AGENTS, 12 * MIB),
        ("POST /v0/skills/s1/versions", UrlFamily.AGENTS, ErrorForm.AGENTS, 12 * MIB),
        ("POST /v0/agents/a1/skills", UrlFamily.AGENTS, ErrorForm.AGENTS, MIB),
        ("POST /v0/hub/a1/install", UrlFamily.AGENTS, ErrorForm.AGENTS, MIB),
        ("POST /api/v1/skills", UrlFamily.AGENTS, ErrorForm.AGENTS, 12 * MIB),
        ("POST /api/v1/uploads/a1", UrlFamily.AGENTS, ErrorForm.AGENTS, 10 * MIB),
        ("POST /api/v1/skills/-/upload-url", UrlFamily.AGENTS, ErrorForm.AGENTS, MIB),
        ("GET /api/v1/skills", UrlFamily.AGENTS, ErrorForm.AGENTS, MIB),
        ("POST /v0/agents/a1/git/git-upload-pack", UrlFamily.GIT, ErrorForm.AGENTS, None),
        ("GET /v0/git/info/refs", UrlFamily.GIT, ErrorForm.AGENTS, None),
        ("POST /v0/llm/v1/chat/completions", UrlFamily.MODELS, ErrorForm.OPENAI, 32 * MIB),
        ("POST /v1/chat/completions", UrlFamily.MODELS, ErrorForm.OPENAI, 32 * MIB),
        ("POST /v0/llmx", UrlFamily.AGENTS, ErrorForm.AGENTS, MIB),
        ("POST /v3/files", UrlFamily.STORAGE, ErrorForm.STORAGE, None),
        (f"PATCH /v3/files/{ID}/a1", UrlFamily.STORAGE, ErrorForm.STORAGE, None),
        ("PUT /v3/files", UrlFamily.STORAGE, ErrorForm.STORAGE, MIB),
        ("POST /v3/files/sign", UrlFamily.STORAGE, ErrorForm.STORAGE, MIB),
        ("POST /v3/vectorize/groups/g1/query", UrlFamily.STORAGE, ErrorForm.STORAGE, MIB),
        ("POST /pinning/pinFileToIPFS", UrlFamily.STORAGE, ErrorForm.LEGACY, None),
        ("POST /pinning/pinJSONToIPFS", UrlFamily.STORAGE, ErrorForm.LEGACY, 10 * MIB),
        ("GET /psa/pins", UrlFamily.STORAGE, ErrorForm.LEGACY, MIB),
        ("GET /ipfs/cid", UrlFamily.CONTENT, ErrorForm.AGENTS, MIB),
        ("GET /ipfs", UrlFamily.CONTENT_INDEX, ErrorForm.AGENTS, MIB),
        ("GET /healthz", UrlFamily.SYSTEM, ErrorForm.AGENTS, MIB),
    ],
)
def test_rows_by_example(request_line: str, family: UrlFamily, form: ErrorForm, size: int | None) -> None:
    rule = find_rule(*request_line.split())
    assert (rule.family, rule.errors, rule.body.size) == (family, form, size)


def example_path(template: str) -> str:
    return re.sub(r"{\w+}", "0" * 32, template.replace("{network}", "public"))


def test_every_request_has_a_row_and_every_row_a_request() -> None:
    """Rows with rights have the operations of the API, the others what is no operation, or a short path of one."""
    examples = ["/v0", "/v1/x", "/v0/llm/x", "/v0/files/upload", "/v0/files/content", "/v0/agents/a/git/x", "/v0/git/x"]
    examples += ["/v0/agents/a/x", "/v0/templates/a/b", "/v0/status", "/v0/hub/a/b/c", "/v0/clawhub", "/v0/x"]
    examples += ["/v0/config"]
    examples += ["/api/v1/x", "/v3/x", "/data/x", "/ipfs/x", "/", "/docs/", "/anything\n", "*"]
    examples += ["/tls/permission", "/openapi"]
    found = [find_rule(method, path) for path in examples for method in ("GET", "POST", "PUT")]
    found += [find_rule(row["method"], example_path(row["path"])) for row in operations()]
    assert all(any(rule is row for rule in found) for row in URL_MAP)


def test_the_default_row_gives_no_right() -> None:
    for path in ("/anything", "/v0/agents/a/anything", "/v0/anything", "/v3/anything/at/all", "/v0/llm/v1/anything"):
        for method in ("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", WEBSOCKET):
            assert find_rule(method, path).find_right(method) is None, (method, path)


@pytest.mark.parametrize(
    ("request_line", "right"),
    [
        ("WEBSOCKET /v0/agents/a1/console/stream", Right.EXECUTE),
        ("WEBSOCKET /v0/agents/a1/console/exec", Right.EXECUTE),
        ("POST /v0/agents/a1/console/exec", Right.EXECUTE),
        ("POST /v0/agents/a1/chat", Right.EXECUTE),
        ("POST /v0/llm/v1/chat/completions", Right.EXECUTE),
        ("POST /v0/agents/a1/tasks/t1/run", Right.EXECUTE),
        ("GET /v0/agents/a1/gateway-token", Right.CREDENTIAL),
        ("HEAD /v0/agents/a1/gateway-token", Right.CREDENTIAL),
        ("POST /v0/agents/a1/gateway-token/rotate", Right.CREDENTIAL),
        ("GET /v0/agents/a1/export", Right.CREDENTIAL),
        ("POST /v0/agents/a1/sign-in-link", Right.CREDENTIAL),
        ("POST /v0/agents/a1/platform/token", Right.CREDENTIAL),
        ("POST /v0/agents/a1/devices/d1/approve", Right.CREDENTIAL),
        ("POST /v3/files/sign", Right.CREDENTIAL),
        ("POST /v3/files/private/download_link", Right.CREDENTIAL),
        ("POST /v3/gateways/g1/access_tokens", Right.CREDENTIAL),
        ("DELETE /v0/agents/a1", Right.MANAGE),
        ("POST /v3/pinata/keys", Right.MANAGE),
        ("POST /v0/session/links", Right.MANAGE),
        ("GET /v0/system", Right.MANAGE),
        ("POST /v0/agents/a1/git/git-upload-pack", Right.READ),
        ("POST /v0/agents/a1/git/git-receive-pack", Right.WRITE),
        ("POST /v3/vectorize/groups/g1/query", Right.READ),
        ("WEBSOCKET /v0/agents/a1/logs", Right.READ),
        ("WEBSOCKET /v0/events", Right.READ),
        ("GET /v0/agents/a1/files/watch", Right.READ),
        ("GET /v0/public-templates", Right.NONE),
        ("PATCH /v3/files/00000000000040008000000000000000/ab12", Right.NONE),
    ],
)
def test_rights_by_example(request_line: str, right: Right) -> None:
    """Written by hand, so that a wrong declaration fails, too."""
    method, path = request_line.split()
    assert find_rule(method, path).find_right(method) is right


def operations() -> list[Any]:
    return list(route_table(create_application(ServiceRegistry(), HostAddresses(public_port=8642))))


@pytest.mark.parametrize("row", operations(), ids=lambda row: f"{row['method']} {row['path']}")
def test_each_operation_is_served_where_its_callers_are(row: Any) -> None:
    path = row["path"].replace("{agentId}", "a1").replace("{file_id}", ID).replace("{token}", "ab12")
    rule = find_rule(row["method"], path)
    if row["path"] != "/metrics":
        named = {"management" if address == "dashboard" else address for address in row["addresses"]}
        assert rule.hosts >= {HostKind(address) for address in named}
    is_public = row["path"] == "/v0/session" or (not row["credentials"] and not row["path"].startswith("/v0/"))
    assert rule.authenticates_early != is_public or row["method"] == "OPTIONS"  # which has no body


@pytest.mark.parametrize(
    ("target", "is_platform"),
    [(b"/v0", True), (b"/v0?x", True), (b"/v0/logs", True), (b"/v0x", False), (b"/", False), (b"/x/v0/", False)],
)
def test_platform_paths_of_an_agents_address_are_known(target: bytes, is_platform: bool) -> None:
    assert is_platform_target(target) is is_platform


def path_parameters(dependant: Dependant) -> Iterator[Any]:
    yield from dependant.path_params
    for one in dependant.dependencies:
        yield from path_parameters(one)


def slash_parameters() -> list[Any]:
    """Return the method, the path and the parameter of each operation whose parameter has the type for slashes."""
    app = create_application(ServiceRegistry(), HostAddresses(public_port=8642))
    routes = [context.original_route for context in iter_route_contexts(app.routes)]
    return [
        pytest.param(method, route.path_format, one.alias, id=f"{method} {route.path_format}")
        for route in routes
        if isinstance(route, APIRoute)
        for one in path_parameters(route.dependant)
        if SlashText in one.field_info.metadata or f"{one.alias}:path" in route.path
        for method in route.methods or ()
    ]


@pytest.mark.parametrize(("method", "path", "name"), slash_parameters())
def test_a_parameter_with_slashes_is_found_in_its_encoded_form(method: str, path: str, name: str) -> None:
    """At its own place, and at no other: an encoded slash elsewhere is no path of the API."""
    parts = path.split("/")
    index = parts.index(f"{{{name}}}")
    kind = {HostKind.STORAGE} if path.startswith("/v3") else {HostKind.MANAGEMENT}
    others = [number for number, part in enumerate(parts) if number > 2 and part.startswith("{") and number != index]
    for number in (index, *others):
        example = [re.sub("{.*}", "x", part) for part in parts]
        example[number] = "@a%2Fb"
        sent = "/".join(example)
        rule = find_rule(method, sent)
        assert is_plain(sent.encode(), sent, rule.slash_segment) is (number == index), sent
        assert number != index or (rule.slash_segment == index and rule.find_right(method) is not None), sent
        assert number != index or rule.hosts & kind


def test_each_row_with_slashes_has_a_parameter_for_them() -> None:
    named = [str(one.values[1]) for one in slash_parameters()]
    examples = [path.replace("/v0/hub", "/v0/clawhub") for path in named]
    examples += [path.replace("/v0/llm/v1", "/v1") for path in named]
    found = [find_rule(method, re.sub("{.*?}", "x", path)) for path in named + examples for method in ("GET", "DELETE")]
    assert len(named) > 15
    assert all(any(rule is row for rule in found) for row in URL_MAP if row.slash_segment is not None)


@pytest.mark.parametrize("place", ["..%2Fx", "x%2F..", ".%2Fx", "x%2F%2e%2e", "x%252Fy", "x%5cy", "%2F%00"])
def test_a_name_with_slashes_has_no_way_out(place: str) -> None:
    sent = f"/v0/hub/{place}/install"
    rule = find_rule("POST", "/v0/hub/x/install")
    assert not is_plain(sent.encode(), _keep_slashes(sent.encode()), rule.slash_segment)
