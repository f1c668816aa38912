"""The URL map: each row by example, and every operation of the API on the addresses that its callers use."""

from typing import Any

import pytest

from roost.hosts.address import HostAddresses
from roost.hosts.application import create_application
from roost.hosts.routes import route_table
from roost.hosts.url_map import URL_MAP, find_rule, is_platform_target
from roost.web.service_registry import ServiceRegistry
from roost.web.url_rule import ErrorForm, HostKind, UrlFamily

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


def test_every_request_has_a_row_and_every_row_a_request() -> None:
    examples = [
        "/v0",
        "/v1/x",
        "/v0/llm/x",
        "/v0/agents/a/files/upload",
        "/v0/files/upload",
        "/v0/agents/a/files/content",
        "/v0/files/content",
        "/v0/agents/a/git/info/refs",
        "/v0/git/info/refs",
        "/v0/public-templates",
        "/v0/agents",
        "/v0/agents/import",
        "/v0/status",
        "/v0/sign-in",
        "/v0/session",
        "/v0/session/links",
        "/v0/system",
        "/v0/agents/a/console/exec",
        "/v0/agents/a/model-server",
    ]
    examples += [
        "/v0/secrets",
        "/v0/skills",
        "/v0/skills/s/versions",
        "/v0/hub",
        "/v0/clawhub",
        "/api/v1/skills",
        "/api/v1/uploads/a",
        "/api/v1/whoami",
        "/api/v1/skills/-/security-verdicts",
        "/api/v1/skills/a",
        "/v3/files",
        "/v3/x",
        "/pinning/pinFileToIPFS",
        "/pinning/pinJSONToIPFS",
        "/groups",
    ]
    examples += ["/ipfs/x", "/", "/metrics", "/healthz", "/tls/permission", "/anything\n", "/.well-known/roost", "*"]
    examples += ["/docs/"]
    examples += [f"/v3/files/{ID}", f"/v3/files/{ID}/a1"]
    examples += ["/v3/vectorize/groups/g/files", "/v3/vectorize/groups/g/query", "/v3/vectorize/files/f"]
    examples += ["/v3/pinata/keys"]
    found = [find_rule(method, path) for path in examples for method in ("GET", "POST", "PUT")]
    found.append(find_rule("DELETE", "/v0/agents/a"))
    assert all(any(rule is row for rule in found) for row in URL_MAP)


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
def test_what_is_the_platforms_on_an_agents_address(target: bytes, is_platform: bool) -> None:
    assert is_platform_target(target) is is_platform
