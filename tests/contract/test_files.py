"""Files of a workspace: list, download in ranges, upload, delete, move, make folders."""

import asyncio
import json
import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import httpx2 as httpx
import pytest

from roost.identity.api_keys import ApiKeys
from roost.warden_client.errors import WardenRequestUnknown
from roost.warden_client.files import WardenFiles
from tests.support.server import RunningServer

MIB = 1024**2


@pytest.fixture(scope="module")
async def agent(server: RunningServer) -> dict[str, Any]:
    return (await server.client(server.key()).post("/v0/agents", json={"name": "a"})).json()["agent"]


@pytest.fixture
async def files(server: RunningServer, agent: dict[str, Any]) -> AsyncIterator[httpx.AsyncClient]:
    """Return a client at the agent's own address; the workspace is empty."""
    client = server.agent_client(agent)
    yield client
    await shell(client, "find . -mindepth 1 -delete")


async def shell(client: httpx.AsyncClient, command: str) -> str:
    result = (await client.post("/v0/console/exec", json={"command": command})).json()
    assert result["exitCode"] == 0, result
    return result["stdout"]


async def paths(client: httpx.AsyncClient, **query: Any) -> list[str]:
    answer = await client.get("/v0/files/list", params=query)
    assert answer.status_code == 200, answer.text
    return [entry["path"] for entry in answer.json()["entries"]]


def error(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]


ON_SERVICES = {"test_large_files_go_both_ways", "test_changes_are_streamed", "test_a_watch_ends_with_its_key"}


_ODD_NAMES = r"""
import os
os.makedirs("odd")
os.chdir("odd")
for name in (b"back\\slash", b"tab\tname", b"line\nname", b"\xff\xfe", b"\xee\xbe\x80", b"a\x80\xef", b"\x1b[1m", b" "):
    open(name, "wb").write(b"x")
os.mkdir(b"f\xff")
open(b"f\xff/inner", "wb").write(b"y")
"""


async def test_listed_files_can_be_read_moved_and_removed(files: httpx.AsyncClient) -> None:
    await files.put("/v0/files/content", params={"path": "make.py"}, content=_ODD_NAMES.encode())
    await shell(files, "python3 make.py")
    listed = await paths(files, path="odd", recursive="true")
    (folder,) = [path.removesuffix("/inner") for path in listed if path.endswith("/inner")]
    assert await paths(files, path=folder) == [f"{folder}/inner"]
    assert (await files.get("/v0/files/content", params={"path": f"{folder}/inner"})).content == b"y"
    odd = [path for path in listed if not path.startswith(folder)]
    assert len(set(odd)) == 8
    for path in odd:
        assert (await files.get("/v0/files/content", params={"path": path})).content == b"x", path
        moved = await files.post("/v0/files/move", json={"path": path, "target": "plain"})
        assert moved.status_code == 200, moved.text
        assert (await files.delete("/v0/files", params={"path": "plain"})).status_code == 200
    gone = await files.delete("/v0/files", params={"path": folder, "recursive": "true"})
    assert gone.status_code == 200, gone.text
    assert await paths(files, path="odd") == []


async def test_a_list_describes_every_kind(files: httpx.AsyncClient) -> None:
    await shell(files, "mkdir -p d/e; echo hi > d/f; chmod +x d/f; ln -s /etc/passwd link; mkfifo pipe")
    entries = (await files.get("/v0/files/list", params={"recursive": "true"})).json()["entries"]
    assert [(entry["path"], entry["kind"], entry["executable"]) for entry in entries] == [
        ("d", "folder", False),
        ("d/e", "folder", False),
        ("d/f", "file", True),
        ("link", "link", False),
        ("pipe", "other", False),
    ]
    assert entries[2]["size"] == 3
    assert entries[2]["modifiedAt"].endswith("Z")
    assert await paths(files) == ["d", "link", "pipe"]
    assert await paths(files, path="d") == await paths(files, path="/workspace/d/") == ["d/e", "d/f"]


async def test_pages_of_a_list(files: httpx.AsyncClient) -> None:
    await shell(files, "mkdir a b; touch a/1 a/2 a/3 b/1 b.txt; mkdir b-; touch b-/x")
    whole = await paths(files, recursive="true")
    assert whole == ["a", "a/1", "a/2", "a/3", "b", "b/1", "b-", "b-/x", "b.txt"]
    seen: list[str] = []
    cursor = None
    while True:
        query = {"recursive": "true", "limit": 2} | ({"cursor": cursor} if cursor else {})
        page = (await files.get("/v0/files/list", params=query)).json()
        seen += [entry["path"] for entry in page["entries"]]
        if (cursor := page["nextCursor"]) is None:
            break
        assert len(page["entries"]) == 2
    assert seen == whole
    after = (await files.get("/v0/files/list?recursive=true&limit=3")).json()["nextCursor"]
    await shell(files, "rm a/2")
    assert await paths(files, recursive="true", cursor=after) == whole[3:]
    assert await paths(files, path="a", cursor=after) == ["a/3"]
    for query in ({"path": "b", "cursor": after}, {"cursor": "!"}, {"cursor": "AA"}):
        assert error(await files.get("/v0/files/list", params=query)) == (400, "Invalid path")


async def test_pages_end_at_any_name(files: httpx.AsyncClient) -> None:
    await shell(files, """touch "$(printf 'a\\377')" "$(printf 'b\\nb')" c""")
    first = (await files.get("/v0/files/list?limit=1")).json()
    assert [entry["path"] for entry in first["entries"]] == ["a\uefff"]
    second = (await files.get("/v0/files/list", params={"limit": 1, "cursor": first["nextCursor"]})).json()
    assert [entry["path"] for entry in second["entries"]] == ["b\nb"]
    assert await paths(files, cursor=second["nextCursor"]) == ["c"]


async def test_large_files_go_both_ways(files: httpx.AsyncClient) -> None:
    data = os.urandom(20 * MIB)

    async def chunks() -> AsyncIterator[bytes]:
        for start in range(0, len(data), 100_000):
            yield data[start : start + 100_000]

    saved = await files.put("/v0/files/content?path=deep/big&executable=true", content=chunks())
    assert (saved.status_code, saved.json()) == (200, {"path": "deep/big", "size": len(data)})
    assert await shell(files, "stat -c %a deep/big; ls -A deep") == "755\nbig\n"
    whole = await files.get("/v0/files/content", params={"path": "deep/big"})
    assert (whole.status_code, whole.content == data, whole.headers["accept-ranges"]) == (200, True, "bytes")
    head = await files.head("/v0/files/content", params={"path": "deep/big"})
    assert (head.status_code, head.content, head.headers["content-length"]) == (200, b"", str(len(data)))


@pytest.mark.parametrize(
    ("header", "status", "body", "content_range"),
    [
        ("bytes=2-4", 206, b"234", "bytes 2-4/10"),
        ("bytes=7-", 206, b"789", "bytes 7-9/10"),
        ("bytes=8-99", 206, b"89", "bytes 8-9/10"),
        ("bytes=-3", 206, b"789", "bytes 7-9/10"),
        ("bytes=-99", 206, b"0123456789", "bytes 0-9/10"),
        ("bytes=10-", 416, None, "bytes */10"),
        ("bytes=-0", 416, None, "bytes */10"),
        ("bytes=4-2", 200, b"0123456789", None),
        ("bytes=0-1,3-4", 200, b"0123456789", None),
        ("lines=0-1", 200, b"0123456789", None),
    ],
)
async def test_ranges_of_a_file_are_served(
    files: httpx.AsyncClient, header: str, status: int, body: bytes | None, content_range: str | None
) -> None:
    await files.put("/v0/files/content?path=digits", content=b"0123456789")
    answer = await files.get("/v0/files/content?path=digits", headers={"Range": header})
    assert (answer.status_code, answer.headers.get("content-range")) == (status, content_range)
    assert body is None or answer.content == body


async def etag_of(client: httpx.AsyncClient, path: str, address: str = "/v0/files/content") -> str:
    """Return the strong entity tag of a file, once it has one."""
    async with asyncio.timeout(5):
        while True:
            answer = await client.get(address, params={"path": path})
            assert answer.status_code == 200
            if not (etag := answer.headers["etag"]).startswith("W/"):
                return etag


async def save(client: httpx.AsyncClient, text: str, if_match: str) -> httpx.Response:
    return await client.put("/v0/files/content?path=note", content=text, headers={"If-Match": if_match})


async def test_a_file_is_replaced_only_as_it_was_read(files: httpx.AsyncClient) -> None:
    assert error(await save(files, "new", "*")) == (412, "The file has changed since it was read: read it again")
    await files.put("/v0/files/content?path=note", content=b"one")
    etag = await etag_of(files, "note")
    assert await etag_of(files, "note", "/v0/files") == etag
    part = await files.get("/v0/files/content?path=note", headers={"Range": "bytes=0-0"})
    assert (part.status_code, part.headers["etag"]) == (206, etag)
    whole = await files.get("/v0/files/content?path=note", headers={"Range": "bytes=0-0", "If-Range": '"other"'})
    assert (whole.status_code, whole.content) == (200, b"one")
    answers = await asyncio.gather(*(save(files, f"writer {number}", f'"x", {etag}') for number in range(6)))
    assert sorted(answer.status_code for answer in answers) == [200, *[412] * 5]
    won = [f"writer {number}" for number, answer in enumerate(answers) if answer.status_code == 200]
    assert (await files.get("/v0/files/content?path=note")).text == won[0]
    present = await etag_of(files, "note")
    for if_match in (etag, f"W/{present}", "", "note", '"0.0.0"', f'"{"f" * 17}.1.1"'):
        assert (await save(files, "refused", if_match)).status_code == 412
    await shell(files, "printf agent > note")
    assert (await save(files, "refused", present)).status_code == 412
    assert (await save(files, "any", "*")).status_code == 200
    assert (await files.put("/v0/files/content?path=note", content=b"no condition")).status_code == 200


async def test_a_container_that_knows_no_conditions(files: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch) -> None:
    async def refuse(*_: object, **options: object) -> int:
        assert options["expected"] == ()
        raise WardenRequestUnknown

    monkeypatch.setattr(WardenFiles, "upload", refuse)
    assert (await save(files, "x", "*")).status_code == 409


async def test_an_interrupted_upload_leaves_the_old_file(files: httpx.AsyncClient) -> None:
    await files.put("/v0/files/content?path=kept", content=b"old")

    async def broken() -> AsyncIterator[bytes]:
        yield b"new" * 100_000
        assert await shell(files, "ls -A") == "kept\n"  # what is not complete has no name
        raise InterruptedError

    with pytest.raises(InterruptedError):
        await files.put("/v0/files/content?path=kept", content=broken())
    assert (await files.get("/v0/files/content?path=kept")).content == b"old"
    assert await paths(files) == ["kept"]


async def test_delete_move_and_folders(files: httpx.AsyncClient) -> None:
    for _ in range(2):
        assert (await files.post("/v0/files/folder", json={"path": "a/b/c"})).status_code == 200
    await files.put("/v0/files/content?path=a/b/file", content=b"x")
    assert (await files.post("/v0/files/move", json={"path": "a/b", "target": "new/place"})).status_code == 200
    assert await paths(files, recursive="true") == ["a", "new", "new/place", "new/place/c", "new/place/file"]
    await files.put("/v0/files/content?path=other", content=b"y")
    moved = await files.post("/v0/files/move", json={"path": "other", "target": "new/place/file"})
    assert error(moved) == (409, "File exists")
    assert error(await files.delete("/v0/files?path=new")) == (409, "Folder not empty")
    assert (await files.delete("/v0/files?path=new&recursive=true")).status_code == 200
    assert (await files.delete("/v0/files?path=a")).status_code == 200
    assert (await files.delete("/v0/files?path=other")).status_code == 200
    assert await paths(files) == []


async def test_nothing_outside_is_reached(files: httpx.AsyncClient) -> None:
    await shell(
        files, "mkdir -p ~/out/deep; echo secret > ~/out/secret; ln -s ~/out out; ln -s ~/out/secret s; mkdir in"
    )
    assert (await files.get("/v0/files/content?path=../agent/out/secret")).status_code == 400
    for path in ("out/secret", "s"):
        assert (await files.get("/v0/files", params={"path": path})).status_code == 404
        assert (await files.get("/v0/files/content", params={"path": path})).status_code == 404
    for path in ("out", "out/deep"):
        assert (await files.get("/v0/files/list", params={"path": path})).status_code == 404
    assert (await files.put("/v0/files/content?path=out/new", content=b"x")).status_code == 400
    assert (await files.post("/v0/files/folder", json={"path": "out/new"})).status_code == 400
    assert (await files.post("/v0/files/move", json={"path": "in", "target": "out/in"})).status_code == 400
    assert (await files.delete("/v0/files?path=out/secret")).status_code == 400
    assert (await files.delete("/v0/files?path=out&recursive=true")).status_code == 200  # the link alone
    assert (await files.put("/v0/files/content?path=s", content=b"mine")).status_code == 200  # replaces the link
    assert await shell(files, "cat ~/out/secret; ls ~/out") == "secret\ndeep\nsecret\n"
    assert await paths(files, recursive="true") == ["in", "s"]


@pytest.mark.parametrize("path", ["a\\b", "a\tb", "a\nb"])
async def test_odd_names_are_not_made(files: httpx.AsyncClient, path: str) -> None:
    await shell(files, "echo x > x")
    expected = (400, "Invalid path")
    assert error(await files.put("/v0/files/content", params={"path": path}, content=b"x")) == expected
    assert error(await files.post("/v0/files/move", json={"path": "x", "target": path})) == expected
    assert error(await files.post("/v0/files/folder", json={"path": path})) == expected
    assert error(await files.get("/v0/files/content", params={"path": path})) == (404, "File not found")


@pytest.mark.parametrize("path", ["..", "a/../..", "/etc/passwd", "a\0b", "\uefc3\uefa9", ""])
async def test_invalid_paths_are_refused_by_each_operation(files: httpx.AsyncClient, path: str) -> None:
    expected = (400, "Invalid path")
    assert error(await files.get("/v0/files/content", params={"path": path})) == expected
    assert error(await files.put("/v0/files/content", params={"path": path}, content=b"x")) == expected
    assert error(await files.delete("/v0/files", params={"path": path})) == expected
    assert error(await files.post("/v0/files/move", json={"path": "x", "target": path})) == expected
    assert error(await files.post("/v0/files/folder", json={"path": path})) == expected


async def test_missing_files_and_wrong_kinds(files: httpx.AsyncClient) -> None:
    await shell(files, "mkdir folder; echo x > file; mkfifo pipe")
    missing = (404, "File not found")
    assert error(await files.get("/v0/files/content?path=none")) == missing
    assert error(await files.get("/v0/files/list?path=none")) == missing
    assert error(await files.delete("/v0/files?path=none")) == missing
    assert error(await files.post("/v0/files/move", json={"path": "none", "target": "x"})) == missing
    for path in ("folder", "pipe"):
        assert error(await files.get("/v0/files/content", params={"path": path})) == (400, "Not a regular file")
    assert error(await files.get("/v0/files/list?path=file")) == (400, "Not a folder")
    assert error(await files.put("/v0/files/content?path=file/x", content=b"x"))[0] in {400, 404}
    assert error(await files.post("/v0/files/folder", json={"path": "file"})) == (400, "Invalid path")


async def test_files_need_the_credential_of_the_agent(server: RunningServer, agent: dict[str, Any]) -> None:
    prefix = f"/v0/agents/{agent['agentId']}/files"
    assert (await server.client(server.key()).get(f"{prefix}/list")).status_code == 200
    for client in (server.client(server.key("stranger")), server.client()):
        assert (await client.get(f"{prefix}/list")).status_code == 401
        assert (await client.put(f"{prefix}/content?path=x", content=b"x")).status_code == 401
        assert (await client.delete(f"{prefix}?path=x")).status_code == 401


@asynccontextmanager
async def watching(client: httpx.AsyncClient) -> AsyncIterator[AsyncIterator[str]]:
    async with asyncio.timeout(20), client.stream("GET", "/v0/files/watch") as answer:
        assert (answer.status_code, answer.headers["content-type"]) == (200, "text/event-stream; charset=utf-8")
        lines = answer.aiter_lines()
        assert json.loads((await anext(lines)).removeprefix("data: ")) == {"paths": [], "complete": True}
        yield lines


async def changed_until(lines: AsyncIterator[str], path: str) -> set[str]:
    found: set[str] = set()
    while path not in found:
        if (line := await anext(lines)).startswith("data: "):
            found |= set(json.loads(line.removeprefix("data: "))["paths"])
    return found


async def test_changes_are_streamed(files: httpx.AsyncClient) -> None:
    async with watching(files) as lines:
        await files.put("/v0/files/content?path=new/file", content=b"x")
        assert "new" in await changed_until(lines, "new")
        await files.put("/v0/files/content?path=new/file", content=b"y")
        await changed_until(lines, "new/file")
        await shell(files, r"""touch "$(printf 'a\377')" """)
        await changed_until(lines, "a\uefff")


async def test_a_head_of_a_stream_ends(files: httpx.AsyncClient) -> None:
    async with asyncio.timeout(10):
        head = await files.head("/v0/files/watch")
    assert (head.status_code, head.headers["cache-control"]) == (200, "no-store")


async def test_a_watch_is_refused_before_it_begins(server: RunningServer, agent: dict[str, Any]) -> None:
    path = f"/v0/agents/{agent['agentId']}/files/watch"
    assert (await server.client().get(path)).status_code == 401
    assert (await server.client(server.key("stranger")).get(path)).status_code == 401
    api = server.client(server.key())
    assert (await api.get("/v0/agents/unknown/files/watch")).status_code == 404
    other = (await api.post("/v0/agents", json={"name": "b"})).json()["agent"]  # has no watch that is about to end
    client = server.agent_client(other)
    async with AsyncExitStack() as stack:
        for _ in range(8):
            await stack.enter_async_context(watching(client))
        assert (await client.get("/v0/files/watch")).status_code == 429
    await api.delete(f"/v0/agents/{other['agentId']}")


async def test_a_watch_ends_with_its_key(server: RunningServer, agent: dict[str, Any]) -> None:
    key = server.key()
    caller = await server.roost.core.identity.api_keys.verify(key)
    path = f"/v0/agents/{agent['agentId']}/files/watch"
    async with asyncio.timeout(20), server.client(key).stream("GET", path) as answer:
        lines = answer.aiter_lines()
        assert (await anext(lines)).startswith("data: ")
        server.roost.core.db.run(lambda connection: ApiKeys.delete(connection, caller.key_id or ""))
        rest = [line async for line in lines]
    assert rest[-3:] == ["event: error", 'data: {"error":"Unauthorized"}', ""]


async def test_a_watch_ends_with_its_container(server: RunningServer) -> None:
    api = server.client(server.key())
    made = (await api.post("/v0/agents", json={"name": "b"})).json()["agent"]
    async with watching(server.agent_client(made)) as lines:
        await api.delete(f"/v0/agents/{made['agentId']}")
        rest = [line async for line in lines]
    assert "event: error" in rest
