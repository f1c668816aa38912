"""Hostile skills, publications, registries, and public requests at a whole server (cases F1 to F3, F5)."""

import asyncio
import io
import json
import re
import stat
import tarfile
import time
import zipfile
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx2 as httpx
import pytest

from roost.storage.unixfs import dagpb
from roost.storage.unixfs.cid import DAG_PB, RAW, Cid
from roost.storage.unixfs.dagpb import PBLink, UnixfsData, UnixfsKind
from tests.server import RunningServer, running
from tests.storage.cars import encode_car

ON_SERVICES = {
    *("test_texts_that_no_database_stores", "test_paths_and_queries_are_no_operators"),
    *("test_public_pages_show_what_is_published_and_nothing_else", "test_public_lists_are_bounded"),
}
SKILL = b"---\nname: notes\ndescription: Takes notes\n---\n\nTake notes.\n"
ZIP = {"Content-Type": "application/zip"}
LINK, DEVICE, PIPE = stat.S_IFLNK | 0o777, stat.S_IFCHR | 0o644, stat.S_IFIFO | 0o644


@pytest.fixture
def api(server: RunningServer, tenant: str) -> httpx.AsyncClient:
    return server.client(server.key(tenant))


def make_zip(entries: Sequence[tuple[str, int, bytes]], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        for path, mode, content in (("SKILL.md", stat.S_IFREG | 0o644, SKILL), *entries):
            info = zipfile.ZipInfo(path)
            info.external_attr = mode << 16
            archive.writestr(info, content, method)
    return data.getvalue()


async def send_zip(api: httpx.AsyncClient, data: bytes) -> httpx.Response:
    return await api.post("/v0/skills", content=data, headers=ZIP)


async def is_refused(api: httpx.AsyncClient, answer: httpx.Response, *statuses: int) -> None:
    """Check that a registration was refused in the contract's form and left nothing."""
    assert answer.status_code in (statuses or (400,)), answer.text
    assert list(answer.json()) == ["error"]
    assert (await api.get("/v0/skills")).json()["skills"] == []


@pytest.mark.parametrize(
    "entries",
    [
        *([(path, 0, b"x")] for path in ("../x", "/etc/x", "C:\\x", "C:x", "\\\\host\\x", "a/../b", "a//b", "~/x")),
        *([("x", mode, b"/etc/passwd")] for mode in (LINK, DEVICE, PIPE, stat.S_IFSOCK, stat.S_IFBLK)),
        [("a", 0, b"1"), ("A", 0, b"2")],
        [("\u00e9", 0, b"1"), ("e\u0301", 0, b"2")],
        [("x", LINK, b".."), ("x/evil", 0, b"1")],
        [(".git/hooks/post-checkout", 0, b"#!/bin/sh\n")],
        [("skill.md", 0, b"another")],
    ],
)
async def test_f1_entries_that_attack(api: httpx.AsyncClient, entries: list[tuple[str, int, bytes]]) -> None:
    """Case F1."""
    await is_refused(api, await send_zip(api, make_zip(entries)))
    if not entries[0][1]:
        parts = [("file", (f"top/{path}", content)) for path, _, content in (("SKILL.md", 0, SKILL), *entries)]
        await is_refused(api, await api.post("/v0/skills", files=parts))


async def test_f1_other_archives_are_refused(api: httpx.AsyncClient) -> None:
    """Case F1: a tar, whose entries could be hard links, is no archive here, whatever it is called."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:gz") as archive:
        info = tarfile.TarInfo("SKILL.md")
        info.size = len(SKILL)
        archive.addfile(info, io.BytesIO(SKILL))
        link = tarfile.TarInfo("x")
        link.type, link.linkname = tarfile.LNKTYPE, "../../etc/passwd"
        archive.addfile(link)
    await is_refused(api, await send_zip(api, data.getvalue()))
    await is_refused(api, await api.post("/v0/skills", files={"file": ("notes.zip", data.getvalue())}))
    tar = await api.post("/v0/skills", content=data.getvalue(), headers={"Content-Type": "application/x-tar"})
    await is_refused(api, tar)


async def test_f2_bombs_are_refused_in_bounded_time(api: httpx.AsyncClient) -> None:
    """Case F2: declared and undeclared sizes, many entries, many files, an archive in an archive."""
    zeros = make_zip([("zeros", 0, bytes(300_000_000))])
    lying = bytearray(zeros)
    at = lying.rindex(b"PK\x01\x02") + 24
    lying[at : at + 4] = (100).to_bytes(4, "little")
    many = make_zip([(f"{number}/", stat.S_IFDIR | 0o755, b"") for number in range(20_000)])
    begun = time.monotonic()
    for data in (zeros, bytes(lying), many, make_zip([(f"f{number}", 0, b"") for number in range(200)])):
        await is_refused(api, await send_zip(api, data), 400, 413)
    await is_refused(api, await send_zip(api, bytes(20_000_000)), 400, 413)
    assert time.monotonic() - begun < 20
    nested = await send_zip(api, make_zip([("inner.zip", 0, zeros)]))
    assert (nested.status_code, nested.json()["skill"]["files"]) == (201, 2)  # its content is not unpacked


@pytest.mark.parametrize(
    "front",
    [
        "",
        "name: notes",
        "description: x",
        "name: ../notes\ndescription: x",
        "name: NOTES\ndescription: x",
        f"name: notes\ndescription: {'x' * 1025}",
        "name: &a notes\ndescription: *a",
        "name: notes\ndescription: !!python/object/apply:os.system [id]",
        "name: notes\ndescription: x\nlol: &a [x,x]\nlol2: &b [*a,*a]\nlol3: [*b,*b]",
        "name: notes\nname: other\ndescription: x",
        "name: notes\ndescription: x\n<<: {a: b}",
        "name: notes\ndescription: x\nx: " + "[" * 10_000,
        "%YAML 1.1\n---\nname: notes\ndescription: x",
    ],
)
async def test_f3_skill_files_that_attack(api: httpx.AsyncClient, front: str) -> None:
    """Case F3."""
    files = {"file": ("notes/SKILL.md", f"---\n{front}\n---\n".encode())}
    await is_refused(api, await api.post("/v0/skills", files=files))


async def test_texts_that_no_database_stores(api: httpx.AsyncClient) -> None:
    """Case F3: NUL and half surrogates, as bytes and as escapes, in every text that is kept."""
    bodies = [
        SKILL + b"a\0b",
        SKILL.replace(b"Takes notes", b'"Takes \\0 notes"'),
        SKILL.replace(b"Takes notes", b'"Takes \\ud800 notes"'),
        SKILL + b"\xed\xa0\x80",
    ]
    for body in bodies:
        await is_refused(api, await api.post("/v0/skills", files={"file": ("notes/SKILL.md", body)}))
    example = b"# what \0 it \x1b[31mis\nAPI_KEY=\nB\0D=\n"
    files = [("file", (f"notes/{path}", content)) for path, content in (("SKILL.md", SKILL), (".env.example", example))]
    made = await api.post("/v0/skills", files=files)
    assert made.status_code == 201, made.text
    assert "\\u0000" not in made.text
    path = f"/v0/skills/{made.json()['skill']['skillId']}/publish"
    for field in ("changelog", "authorName", "category", "authorUrl", "version"):
        answer = await api.post(path, content=json.dumps({field: "a\0b"}))
        assert answer.status_code in (400, 404), (field, answer.text)
    published = await api.post(path, json={"authorName": "Ro\u202eost\u200b \x1b[31m", "changelog": "x\x1b[2J"})
    assert published.status_code in (200, 400), published.text
    assert not re.search(r"\\u202e|\\u001b|\u202e", published.text)


async def test_folders_of_the_storage_api_that_attack(
    api: httpx.AsyncClient, server: RunningServer, tenant: str
) -> None:
    """Cases F1 and F2 by the way of a CAR, whose folders another program made."""
    uploads = server.client(server.key(tenant), "uploads.localhost")
    file = Cid.for_block(RAW, SKILL, 1)
    good = [("SKILL.md", file)]
    folders: list[list[tuple[str, Cid]]] = [
        *(
            [*good, (name, file)]
            for name in ("..", ".", "", "a/b", "/etc", "a\\b", ".git", "skill.md", "C:", "\0", "~")
        ),
        [*good, *good],
        [*good, *((f"f{number:04}", file) for number in range(300))],
    ]
    for links in folders:
        cid, blocks = _make_folder(links)
        await _is_no_skill(api, uploads, cid, [(file, SKILL), *blocks])
    link, target = _make_node([], UnixfsData(UnixfsKind.SYMLINK, data=b"/etc/passwd"))
    cid, blocks = _make_folder([*good, ("x", link)])
    await _is_no_skill(api, uploads, cid, [(file, SKILL), *target, *blocks])
    cid, all_blocks = file, [(file, SKILL)]
    for _ in range(50):
        cid, blocks = _make_folder([*good, ("d", cid)])
        all_blocks += blocks
    await _is_no_skill(api, uploads, cid, all_blocks)
    wide, all_blocks = file, [(file, SKILL)]
    for _ in range(8):  # a million paths in nine blocks
        wide, blocks = _make_folder([*good, *((f"d{number}", wide) for number in range(6))])
        all_blocks += blocks
    begun = time.monotonic()
    await _is_no_skill(api, uploads, wide, all_blocks)
    assert time.monotonic() - begun < 20


def _make_node(links: Sequence[PBLink], data: UnixfsData) -> tuple[Cid, list[tuple[Cid, bytes]]]:
    block = dagpb.encode_node(links, data)
    cid = Cid.for_block(DAG_PB, block, 1)
    return cid, [(cid, block)]


def _make_folder(entries: Sequence[tuple[str, Cid]]) -> tuple[Cid, list[tuple[Cid, bytes]]]:
    return _make_node([PBLink(cid, name, 100) for name, cid in entries], UnixfsData(UnixfsKind.DIRECTORY))


async def _is_no_skill(
    api: httpx.AsyncClient, uploads: httpx.AsyncClient, cid: Cid, blocks: Sequence[tuple[Cid, bytes]]
) -> None:
    car = encode_car([cid], list(dict(blocks).items()))
    stored = await uploads.post("/v3/files", files={"file": ("x.car", car)}, data={"network": "private", "car": "true"})
    if stored.status_code == 200:
        await is_refused(api, await api.post("/v0/skills", json={"skillCid": str(cid)}), 400, 404)
    else:
        assert stored.status_code == 400, stored.text


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
    settings = {"ROOST_HUB_REGISTRIES": url, "ROOST_EGRESS_ALLOW": "127.0.0.1/32"}
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
