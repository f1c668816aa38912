"""Hostile skills at a whole server, by every way in (cases F1 to F3)."""

import hashlib
import io
import json
import random
import re
import stat
import tarfile
import time
import zipfile
from collections.abc import Sequence

import httpx2 as httpx
import pytest

from roost.storage.content.unixfs import dagpb
from roost.storage.content.unixfs.cid import DAG_PB, RAW, Cid
from roost.storage.content.unixfs.dagpb import PBLink, UnixfsData, UnixfsKind
from tests.storage.cars import encode_car
from tests.support.server import RunningServer

ON_SERVICES = {"test_texts_that_no_database_stores"}
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


async def test_f1_forms_that_are_damaged(api: httpx.AsyncClient) -> None:
    """Cases F1, F2: no form is more than refused, wherever it is cut, repeated or overwritten."""
    chance = random.Random(5)
    files = [("file", (f"notes/{path}", content)) for path, content in (("SKILL.md", SKILL), ("a/b.txt", b"x" * 500))]
    request = api.build_request("POST", "/v0/skills", files=files, data={"version": "1.0.0", "envVars": "KEY"})
    form, kind = await request.aread(), request.headers["content-type"]
    seen: set[int] = set()
    for _ in range(250):
        damaged = bytearray(form)
        for _ in range(chance.randint(1, 3)):
            at = chance.randrange(len(damaged) + 1)
            end = at + chance.choice((0, 1, 2, 40, 400))
            damaged[at:end] = chance.choice((b"", b"\r\n", b'"', b"--", b"\0", b"\xff", damaged[:50], b"../", b";"))
        answer = await api.post("/v0/skills", content=bytes(damaged), headers={"Content-Type": kind})
        seen.add(answer.status_code)
        if answer.is_success:
            await api.delete(f"/v0/skills/{answer.json()['skill']['skillId']}")
    assert seen <= {200, 201, 400, 413}, seen
    assert len(seen) > 1


async def test_f1_files_that_are_uploaded_one_by_one(api: httpx.AsyncClient) -> None:
    """Case F1 in the protocol of ClawHub, whose clients name the paths of uploaded files."""
    ticket = (
        await api.post("/api/v1/skills/-/upload-url", json={"path": "x", "size": len(SKILL), "sha256": ""})
    ).json()
    upload = await api.post(f"/api/v1/uploads/{ticket['uploadTicket']}", content=SKILL)
    file = {"storageId": upload.json()["storageId"], "sha256": hashlib.sha256(SKILL).hexdigest()}
    for path in ("../x", "/etc/x", "a\\b", "C:x", ".git/config", "a\0b", "skill.md", "SKILL.md/x", "x" * 300):
        files = [{**file, "path": one} for one in ("SKILL.md", path)]
        body = {"slug": "notes", "version": "1.0.0", "files": files}
        await is_refused(api, await api.post("/api/v1/skills", json=body))
    for body in ({"version": "latest"}, {"version": "1"}, {"slug": "../notes"}, {"ownerHandle": "roost"}):
        whole = {"slug": "notes", "version": "1.0.0", "files": [{**file, "path": "SKILL.md"}], **body}
        await is_refused(api, await api.post("/api/v1/skills", json=whole), 400, 403)


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
