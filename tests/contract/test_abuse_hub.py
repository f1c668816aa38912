"""Hostile requests to the hub and its public pages, and registries that attack (case F5)."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx2 as httpx
import pytest

from tests.contract.test_abuse_skills import LINK, make_zip
from tests.support.server import RunningServer, running

SETTINGS = {"ROOST_CATALOGUE": "true"}
ON_SERVICES = {
    *("test_paths_and_queries_are_no_operators", "test_public_lists_are_bounded"),
    "test_public_pages_show_what_is_published_and_nothing_else",
}
ODD_NAMES = (
    *(
        "../../etc/passwd",
        "http://127.0.0.1/x",
        "file:///etc/passwd",
        "@a/../../x",
        "' or 1=1 --",
        "%",
        "_",
        ".*",
    ),
    *("\\", "x" * 300, "\u0430", "~~", "a~b~c", "00000000~~..", "00000000~a/b~c", "%00", "\u202e", "@roost/", "@/x"),
)


@pytest.fixture
def api(server: RunningServer, tenant: str) -> httpx.AsyncClient:
    return server.client(server.key(tenant))


async def test_paths_and_queries_are_no_operators(api: httpx.AsyncClient, server: RunningServer) -> None:
    """Case F5: names of hub skills, registries' ids, versions and cursors are compared with what is stored, no more."""
    public = server.client()
    for name in ODD_NAMES:
        path = quote(name, safe="")
        for client, method, target in (
            (api, "GET", f"/v0/hub/{path}"),
            (api, "POST", f"/v0/hub/{path}/install"),
            (api, "DELETE", f"/v0/hub/{path}"),
            (api, "GET", f"/v0/hub/@roost/{path}"),
            (api, "GET", f"/v0/hub/json-tools?version={path}"),
            (public, "GET", f"/api/v1/skills/{path}"),
            (public, "GET", f"/api/v1/skills/json-tools/versions/{path}"),
            (public, "GET", f"/api/v1/skills/json-tools?ownerHandle={path}"),
            (public, "GET", f"/api/v1/skills/json-tools/file?path={path}"),
            (public, "GET", f"/api/v1/download?slug={path}"),
            (public, "GET", f"/api/v1/download?slug=json-tools&version={path}"),
            (public, "GET", f"/api/v1/skills?cursor={path}"),
            (public, "GET", f"/v0/public-templates?cursor={path}"),
        ):
            answer = await client.request(method, target)
            assert answer.status_code in (400, 404), f"{method} {target}: {answer.status_code} {answer.text[:200]}"
        for target in (f"/api/v1/search?q={path}", f"/v0/public-templates?q={path}", f"/api/v1/skills?prefix={path}"):
            answer = await public.get(target)
            assert answer.status_code in (200, 400), f"{target}: {answer.status_code} {answer.text[:200]}"
            assert "etc/passwd" not in answer.text
    assert (await api.get("/v0/skills")).json()["skills"] == []


class HostileRegistry:
    """Speaks HTTP on loopback, and answers each path with what a test gives it."""

    def __init__(self) -> None:
        self.answers: dict[str, tuple[str, bytes]] = {}
        self.port = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        path = (await reader.readuntil(b"\r\n\r\n")).split()[1].decode().partition("?")[0]
        head, body = self.answers.get(path, ("404 Not Found", b"{}"))
        status, _, more = head.partition("\r\n")
        lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", "Connection: close", *([more] if more else [])]
        writer.write("\r\n".join([*lines, "", ""]).encode() + body)
        writer.close()

    def set_skill(self, archive: bytes, slug: str = "notes", **skill: Any) -> None:
        found = {"skill": {"slug": slug, **skill}, "latestVersion": {"version": "1.0.0"}, "owner": {"handle": "eve"}}
        self.answers["/api/v1/skills/notes"] = ("200 OK", json.dumps(found).encode())
        self.answers["/api/v1/download"] = ("200 OK", archive)


@pytest.fixture(scope="module")
async def hostile() -> AsyncIterator[HostileRegistry]:
    registry = HostileRegistry()
    listener = await asyncio.start_server(registry.serve, "127.0.0.1", 0)
    async with listener:
        registry.port = listener.sockets[0].getsockname()[1]
        yield registry


async def test_registries_that_attack(hostile: HostileRegistry, tmp_path: Path) -> None:
    """Whatever a registry answers, it is refused or treated as our own upload is; nothing else is installed."""
    url = f"http://127.0.0.1:{hostile.port}"
    settings: dict[str, Any] = {"ROOST_HUB_REGISTRIES": url, "ROOST_EGRESS_ALLOW": "127.0.0.1/32"}
    async with running(tmp_path / "data", **settings) as server:
        api = server.client(server.key())
        row = {"slug": "notes", "owner": {"handle": "eve"}, "summary": "\u202ex\x1b[31m\ud800", "version": "\0"}
        hostile.answers["/api/v1/skills"] = ("200 OK", json.dumps({"items": [row, {"slug": "../x"}]}).encode())
        (found,) = [one for one in (await api.get("/v0/hub")).json()["skills"] if one["source"]]
        assert not re.search("[\u202e\x1b]", json.dumps(found, ensure_ascii=False))
        path = f"/v0/hub/{found['hubSkillId']}"
        valid = make_zip([])
        moved = f"302 Found\r\nLocation: {url}/elsewhere"
        hostile.answers["/elsewhere"] = ("200 OK", valid)
        attacks: Sequence[tuple[bytes, Mapping[str, Any]]] = [
            *((valid, {"slug": slug}) for slug in ("other", "../../x", "no\0tes", "no/tes", "", "x" * 200)),
            (b"", {}),
            (b"PK\x03\x04", {}),
            (make_zip([("../x", 0, b"x")]), {}),
            (make_zip([("x", LINK, b"/etc/passwd")]), {}),
            (make_zip([("zeros", 0, bytes(100_000_000))]), {}),
            (b"x" * 12_000_000, {}),
            (valid.replace(b"SKILL.md", b"SKILL.xx"), {}),
        ]
        for archive, skill in attacks:
            hostile.set_skill(archive, **skill)
            for answer in (await api.get(path), await api.post(f"{path}/install")):
                assert answer.status_code in (400, 404, 503), answer.text
                assert list(answer.json()) == ["error"]
        hostile.set_skill(valid)
        hostile.answers["/api/v1/download"] = (moved, b"")
        assert (await api.post(f"{path}/install")).status_code == 503
        assert (await api.get("/v0/skills")).json()["skills"] == []
        hostile.set_skill(valid)
        assert (await api.post(f"{path}/install")).status_code == 200


PUBLIC_LISTS = ("/v0/public-templates", "/api/v1/skills", "/api/v1/search?q=", "/.well-known/clawhub.json")


async def test_public_pages_show_what_is_published_and_nothing_else(server: RunningServer, tenant: str) -> None:
    owner = server.client(server.key(tenant))
    private = await _register(owner, "private-diary", "Dear Diary")
    shown = await _register(owner, "shown-skill", "Shown words", version="1.0.0")
    answer = await owner.post(f"/v0/skills/{shown['skillId']}/publish")
    assert answer.status_code == 200, answer.text
    later = await _register(owner, "shown-skill", "Unpublished words", version="2.0.0")
    hub_id = answer.json()["skill"]["hubSkillId"]
    public = server.client()
    pages = [*PUBLIC_LISTS, "/api/v1/search?q=diary", "/api/v1/search?q=unpublished", "/v0/public-templates?q=diary"]
    pages += [
        f"/api/v1/skills/shown-skill{rest}" for rest in ("", "/versions", "/versions/1.0.0", "/scan", "/moderation")
    ]
    pages += ["/api/v1/skills/shown-skill/file?path=SKILL.md", "/api/v1/resolve?slug=shown-skill&hash=" + "0" * 64]
    texts: list[str] = []
    for page in pages:
        found = await public.get(page)
        assert found.status_code == 200, f"{page}: {found.text}"
        texts.append(found.text)
    whole = "\n".join(texts)
    secrets = [shown["userId"], private["skillId"], private["skillCid"], shown["skillId"], later["skillCid"]]
    secrets += ["Dear Diary", "private-diary", "Unpublished words", str(server.roost.core.settings.data), "agentId"]
    for secret in secrets:
        assert secret not in whole, secret
    hidden = ["private-diary", private["skillId"], private["skillCid"], shown["skillId"], shown["userId"]]
    for name in hidden:
        for page in (
            f"/api/v1/skills/{name}",
            f"/api/v1/download?slug={name}",
            f"/api/v1/skills/{name}/file?path=SKILL.md",
        ):
            assert (await public.get(page)).status_code == 404, page
    for page in ("versions/2.0.0", f"versions/{later['skillCid']}", f"versions/{private['skillCid']}"):
        assert (await public.get(f"/api/v1/skills/shown-skill/{page}")).status_code == 404
    assert (await public.get(f"/api/v1/download?slug=shown-skill&version={later['skillCid']}")).status_code == 404
    await owner.delete(f"/v0/hub/{hub_id}")
    for page in (f"/api/v1/skills/{hub_id}", "/api/v1/skills/shown-skill", "/api/v1/download?slug=shown-skill"):
        assert (await public.get(page)).status_code == 404


async def _register(client: httpx.AsyncClient, name: str, words: str, **fields: str) -> dict[str, Any]:
    content = f"---\nname: {name}\ndescription: {words}\n---\n\n{words}\n".encode()
    answer = await client.post("/v0/skills", files={"file": ("x/SKILL.md", content)}, data=fields)
    assert answer.status_code == 201, answer.text
    return answer.json()["skill"]


async def test_public_lists_are_bounded(server: RunningServer) -> None:
    """Pages have a maximum, cursors are no offsets, and nothing that changes is open."""
    public = server.client()
    for path in ("/v0/public-templates", "/api/v1/skills", "/api/v1/search?q="):
        mark = "&" if "?" in path else "?"
        for limit in ("0", "-1", "1000000", "x", "1e3", ""):
            assert (await public.get(f"{path}{mark}limit={limit}")).status_code == 400, (path, limit)
    first = (await public.get("/api/v1/skills?limit=1")).json()
    assert len(first["items"]) == 1
    for method, path in (
        ("GET", "/api/v1/whoami"),
        ("POST", "/api/v1/skills"),
        ("POST", "/api/v1/skills/-/upload-url"),
        ("POST", "/api/v1/uploads/x"),
        ("DELETE", "/api/v1/skills/json-tools"),
        ("GET", "/v0/hub"),
        ("GET", "/v0/skills"),
        ("GET", "/v0/templates"),
    ):
        answer = await public.request(method, path)
        assert answer.status_code == 401, f"{method} {path}: {answer.status_code}"
