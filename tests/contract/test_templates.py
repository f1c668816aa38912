"""Agent templates over HTTP (contract, Templates), from a real Git server on loopback (cases F6 to F8)."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest

from roost.agents.library.templates import service
from roost.agents.library.templates.model import README_LIMIT, template_scope
from roost.storage.content.errors import ContentNotFound
from roost.storage.content.tree_walk import walk_tree
from roost.storage.content.unixfs.cid import Cid
from tests.conformance.git_backend import run_backend
from tests.conformance.git_objects import commit_tree, git, make_blob, make_tree
from tests.contract.backing import Backing
from tests.support.server import RunningServer, running

pytestmark = pytest.mark.container
ON_SERVICES = {"test_submit_update_and_archive", "test_two_submissions_of_one_slug"}
MANIFEST: dict[str, Any] = {
    "version": 1,
    "_docs": "how to",
    "agent": {"name": "Reader", "description": "Reads books.", "vibe": "calm", "emoji": "📚"},
    "secrets": [{"name": "READER_KEY", "description": "Key of the library"}],
    "skills": [{"cid": "bafyskill", "name": "Search"}],
    "tasks": [{"name": "Daily", "schedule": "0 8 * * *", "prompt": "Read on"}],
    "template": {"category": "books", "tags": ["calm"], "authorName": "Ada"},
}


@pytest.fixture(scope="module")
async def server(backing: Backing) -> AsyncIterator[RunningServer]:
    async with running(backing.folder, ROOST_EGRESS_ALLOW="127.0.0.1/32", **backing.environment) as server:
        yield server


@pytest.fixture
def client(server: RunningServer, tenant: str) -> httpx.AsyncClient:
    return server.client(server.key(tenant))


@pytest.fixture
def public(server: RunningServer) -> httpx.AsyncClient:
    return server.client()


@pytest.fixture
def repository(tmp_path: Path) -> Iterator["Repository"]:
    with run_backend(tmp_path / "served") as url:
        git(tmp_path, "init", "-q", "--bare", "-b", "main", tmp_path / "served/reader.git")
        yield Repository(f"{url}/reader.git", tmp_path / "served/reader.git")


class Repository:
    """A repository with a template, which `commit` changes."""

    def __init__(self, url: str, folder: Path) -> None:
        self.url = url
        self.folder = folder

    def commit(
        self,
        slug: str | None,
        *top: tuple[str, bytes, bytes],
        workspace: list[tuple[str, bytes, bytes]] | None = None,
        branch: str = "main",
        readme: bytes = b"# Reader <script>alert(1)</script>\n\x1b[31m",
        **manifest: Any,
    ) -> str:
        """Commit a manifest and more entries at the top (mode, name, content); return the commit."""
        document = {**MANIFEST, **manifest}
        if slug is not None:
            document["template"] = {**MANIFEST["template"], "slug": slug}
        files = workspace if workspace is not None else [("100644", b"AGENTS.md", b"# Agent\n")]
        entries = [
            ("100644", b"README.md", self._blob(readme)),
            *((mode, name, self._blob(content)) for mode, name, content in top),
            ("40000", b"workspace", make_tree(self.folder, [(m, n, self._blob(c)) for m, n, c in files])),
        ]
        if not any(name == b"manifest.json" for _, name, _ in top):
            entries.append(("100644", b"manifest.json", self._blob(json.dumps(document).encode())))
        entries.sort(key=lambda entry: entry[1] + (b"/" if entry[0] == "40000" else b""))
        commit = commit_tree(self.folder, make_tree(self.folder, entries))
        git(self.folder, "update-ref", f"refs/heads/{branch}", commit)
        return commit

    def _blob(self, content: bytes) -> str:
        return make_blob(self.folder, content)


async def problems(client: httpx.AsyncClient, repository: Repository, **body: Any) -> set[str]:
    """Validate and return the paths of the errors."""
    response = await client.post("/v0/templates/validate", json={"gitUrl": repository.url, **body})
    assert response.status_code == 400, response.text
    assert response.json()["error"] == "Invalid template"
    assert response.json()["valid"] is False
    return {fault["path"] for fault in response.json()["errors"]}


async def test_branches_and_refs(client: httpx.AsyncClient, repository: Repository) -> None:
    commit = repository.commit("refs")
    repository.commit("refs", branch="next")
    git(repository.folder, "tag", "v1", commit)
    body = {"gitUrl": repository.url}
    branches = (await client.post("/v0/templates/branches", json=body)).json()
    assert branches == {"branches": ["main", "next"], "defaultBranch": "main"}
    refs = (await client.post("/v0/templates/refs", json=body)).json()
    assert refs["tags"] == [{"name": "v1", "commitSha": commit}]
    assert [one["name"] for one in refs["branches"]] == ["main", "next"]


async def test_validate_shows_a_template_without_keeping_it(client: httpx.AsyncClient, repository: Repository) -> None:
    commit = repository.commit(
        "validated", workspace=[("100755", b"run.sh", b"#!/bin/sh\n"), ("120000", b"to", b"run.sh")]
    )
    response = await client.post("/v0/templates/validate", json={"gitUrl": repository.url, "branch": "main"})
    found = response.json()
    assert (response.status_code, found["valid"], found["errors"], found["commitSha"]) == (200, True, [], commit)
    assert found["warnings"] == [{"path": "_docs", "message": "unknown field, ignored"}]
    assert found["files"] == [{"path": "run.sh", "size": 10}, {"path": "to", "size": 6}]
    assert found["manifest"]["agent"]["name"] == "Reader"
    assert (await client.get("/v0/templates")).json()["templates"] == []


async def test_submit_update_and_archive(
    server: RunningServer, client: httpx.AsyncClient, public: httpx.AsyncClient, repository: Repository
) -> None:
    first = repository.commit("reader")
    response = await client.post("/v0/templates", json={"gitUrl": repository.url})
    assert response.status_code == 201, response.text
    made = response.json()["template"]
    path = f"/v0/templates/{made['templateId']}"
    assert (made["slug"], made["status"], made["version"], made["gitCommitSha"]) == ("reader", "published", 1, first)
    assert (made["authorName"], made["partnerName"], made["category"]) == ("Ada", "Ada", "books")
    assert made["requiredSecrets"][0]["name"] == "READER_KEY"
    assert made["includedSkillCids"] == ["bafyskill"]
    assert made["readme"] == "# Reader <script>alert(1)</script>\n"
    assert made["snapshotCid"].startswith("bafybei")

    second = repository.commit("reader", workspace=[("100644", b"AGENTS.md", b"# New\n"), ("100644", b"SOUL.md", b"")])
    response = await client.put(path, json={"nameOverride": "Bookworm"})
    updated = response.json()["template"]
    assert (response.status_code, updated["version"], updated["gitCommitSha"]) == (200, 2, second), response.text
    assert (updated["name"], updated["files"], updated["createdAt"]) == ("Bookworm", 2, made["createdAt"])
    assert updated["snapshotCid"] != made["snapshotCid"]
    by_slug = (await client.get("/v0/templates/reader")).json()["template"]
    assert by_slug == (await client.get(f"/v0/templates/id/{made['templateId']}")).json()["template"] == updated

    other = server.client(server.key("other"))
    assert (await other.get("/v0/templates/reader")).status_code == 200
    assert (await other.put(path, json={})).status_code == 404
    assert (await other.delete(path)).status_code == 404
    assert (await other.get("/v0/templates")).json()["templates"] == []

    assert (await client.delete(path)).json() == {"success": True, "message": "Template archived"}
    for request in (client.get("/v0/templates/reader"), client.put(path, json={}), client.delete(path)):
        response = await request
        assert (response.status_code, response.json()) == (404, {"error": "Template not found"})
    listed = (await public.get("/v0/public-templates", params={"q": "bookworm"})).json()
    assert listed["templates"] == []
    assert (await client.post("/v0/templates", json={"gitUrl": repository.url})).status_code == 201
    again = (await client.get("/v0/templates/reader")).json()["template"]
    assert again["templateId"] != made["templateId"]
    assert (await client.delete(f"/v0/templates/{again['templateId']}")).status_code == 200


async def test_the_files_of_kept_versions_are_content(
    server: RunningServer, client: httpx.AsyncClient, repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "KEPT_VERSIONS", 1)
    files = [
        ("100644", b"AGENTS.md", b"# Agent\n"),
        ("100755", b"run.sh", b"#!/bin/sh\n"),
        ("120000", b"to", b"run.sh"),
    ]
    repository.commit("kept", workspace=files)
    first = (await client.post("/v0/templates", json={"gitUrl": repository.url})).json()["template"]
    assert await members(server, first) == {"AGENTS.md": None, "run.sh": 0o755, "to": None}
    repository.commit("kept", workspace=[])
    second = (await client.put(f"/v0/templates/{first['templateId']}", json={})).json()["template"]
    assert await members(server, second) == {}
    with pytest.raises(ContentNotFound):
        await members(server, first)


async def test_a_tenant_has_so_many_templates_and_a_readme_so_many_bytes(
    client: httpx.AsyncClient, repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "TEMPLATE_LIMIT", 1)
    repository.commit("bounded", readme=b"x" * (README_LIMIT + 1))
    first = (await client.post("/v0/templates", json={"gitUrl": repository.url})).json()
    assert first["template"]["readme"] == ""
    refused = await client.post("/v0/templates", json={"gitUrl": repository.url, "slugOverride": "second"})
    assert (refused.status_code, refused.json()) == (403, {"error": "Template limit reached"})
    assert (await client.delete(f"/v0/templates/{first['template']['templateId']}")).status_code == 200
    repository.commit("bounded", readme=b"x" * README_LIMIT)
    second = (await client.post("/v0/templates", json={"gitUrl": repository.url})).json()
    assert len(second["template"]["readme"]) == README_LIMIT


async def members(server: RunningServer, template: dict[str, Any]) -> dict[str, int | None]:
    """Return the paths of a template's files with their modes."""
    reader, scope = server.roost.storage.content.reader, template_scope(template["submittedBy"])
    async with aclosing(walk_tree(reader, scope, Cid.parse(template["snapshotCid"]))) as found:
        return {member.path: member.mode async for member in found if member.path}


async def test_two_submissions_of_one_slug(
    server: RunningServer, client: httpx.AsyncClient, repository: Repository
) -> None:
    repository.commit("raced")
    clients = [client, server.client(server.key("racer"))]
    submissions = [one.post("/v0/templates", json={"gitUrl": repository.url}) for one in clients * 2]
    responses = await asyncio.gather(*submissions)
    assert sorted(one.status_code for one in responses) == [201, 409, 409, 409]
    assert {one.json()["error"] for one in responses if one.status_code == 409} == {"Another template has this slug"}
    (winner,) = [one for one in responses if one.status_code == 201]
    path = f"/v0/templates/{winner.json()['template']['templateId']}"
    owner = clients[responses.index(winner) % 2]
    updates = await asyncio.gather(*(owner.put(path, json={}) for _ in range(2)))
    assert sorted(one.status_code for one in updates) in ([200, 200], [200, 409])
    assert (await owner.delete(path)).status_code == 200


async def test_the_marketplace_shows_published_templates_only(
    client: httpx.AsyncClient, public: httpx.AsyncClient, repository: Repository, server: RunningServer
) -> None:
    for number in range(3):
        repository.commit(f"market-{number}", agent={"name": f"Market 100% {number}"})
        body = {"gitUrl": repository.url, "public": number != 1}
        assert (await client.post("/v0/templates", json=body)).status_code == 201

    async def slugs(at: httpx.AsyncClient, path: str, **query: Any) -> list[str]:
        response = await at.get(path, params=query)
        assert response.status_code == 200, response.text
        return [one["slug"] for one in response.json()["templates"]]

    market = "/v0/public-templates"
    assert await slugs(public, market, q="market 100%") == ["market-2", "market-0"]
    assert await slugs(public, market, q="market", category="other") == []
    assert await slugs(public, market, q="market", category="books", featured="false") == ["market-2", "market-0"]
    assert await slugs(public, market, featured="true") == []
    assert await slugs(client, "/v0/templates", submittedBy="me") == ["market-2", "market-1", "market-0"]
    first = (await public.get(market, params={"q": "market", "limit": 1})).json()
    assert await slugs(public, market, q="market", limit=1, cursor=first["nextCursor"]) == ["market-0"]
    assert not {"submittedBy", "readme", "manifest", "userId"} & first["templates"][0].keys()
    assert "books" in first["categories"]
    other = server.client(server.key("other"))
    assert (await other.get("/v0/templates/market-1")).status_code == 404
    assert (await client.get("/v0/templates/market-1")).json()["template"]["status"] == "draft"
    assert (await public.get("/v0/templates")).status_code == 401


async def test_forbidden_files_of_a_template_are_problems(client: httpx.AsyncClient, repository: Repository) -> None:
    repository.commit("x", ("120000", b"manifest.json", b"README.md"))
    assert await problems(client, repository) == {"manifest.json"}
    repository.commit("x", ("100644", b"manifest.json", b" " * (1024**2 + 1)))
    assert await problems(client, repository) == {"manifest.json"}
    repository.commit("x", ("100644", b"manifest.json", b"[" * 100_000))
    assert await problems(client, repository) == {""}
    repository.commit("x", engine="other", tasks=[{"name": "x"}])
    assert await problems(client, repository) == {"tasks.0.schedule", "tasks.0.payload"}
    repository.commit("x", engine="other")
    assert await problems(client, repository) == {"engine"}
    repository.commit(None)
    assert await problems(client, repository) == {"template.slug"}
    links = [("120000", name, to) for name, to in ((b"a", b"/etc/passwd"), (b"b", b"../x"), (b"c", b"d"))]
    links += [("120000", b"d", b"."), ("120000", b"e", b"d/.."), ("120000", b"f", b"./d/x")]
    repository.commit("x", workspace=links)
    assert await problems(client, repository) == {"workspace/a", "workspace/b", "workspace/e"}
    repository.commit("x", workspace=[("120000", b"g", b"a\0b"), ("100644", "icon \uef80".encode(), b"fine")])
    assert await problems(client, repository) == {"workspace/g"}
    repository.commit("x", workspace=[("120000", b"manifest.json", b"x"), ("120000", b"t", b"t" * 4096)])
    assert await problems(client, repository) == {"workspace/manifest.json", "workspace/t"}
    repository.commit("x")
    assert await problems(client, repository, path="nowhere") == {"manifest.json"}
    response = await client.post("/v0/templates/validate", json={"gitUrl": repository.url, "slugOverride": "New Slug"})
    assert response.status_code == 400
    response = await client.post("/v0/templates/validate", json={"gitUrl": repository.url, "ref": "missing"})
    assert (response.status_code, "no such branch" in response.json()["error"]) == (400, True)


@pytest.mark.parametrize(
    "url",
    [
        *("ext::sh -c id", "file:///etc", "--upload-pack=id", "https://ada:secret@example.com/x"),
        *("http://example.com/x", "https://0x7f.2/x", "https://169.254.169.254/x", "https://[::ffff:10.0.0.1]/x"),
    ],
)
async def test_urls_that_are_refused(client: httpx.AsyncClient, url: str) -> None:
    for path in ("", "/validate", "/branches", "/refs"):
        response = await client.post(f"/v0/templates{path}", json={"gitUrl": url})
        assert response.status_code == 400, response.text
        assert "secret" not in response.text


async def test_a_server_that_does_not_answer(client: httpx.AsyncClient) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    response = await client.post("/v0/templates/refs", json={"gitUrl": f"http://127.0.0.1:{port}/x.git"})
    assert (response.status_code, list(response.json())) == (503, ["error"])
