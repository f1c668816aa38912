"""Files of a container, over every runtime: no path leads outside, for any content of the workspace."""

import asyncio
import contextlib
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from roost.warden_client.client import WardenClient
from roost.warden_client.errors import (
    ExecRefused,
    PathRefused,
    WardenBusy,
    WardenFileNotFound,
    WardenFileTooLarge,
    WardenFolderNotEmpty,
    WardenNotAFile,
    WardenTooManyEntries,
)
from tests.conformance.runtimes import RuntimeEnv
from tests.conformance.tree_fixtures import SECRET, container, env

__all__ = ["container", "env"]

LIMIT = 1 << 20
MALFORMED = ["", "/", "/etc/passwd", "..", "../x", "a/../../x", "a\0b", "\0", "a/" * 300 + "b", "x" * 300]


async def shell(container: WardenClient, script: str) -> str:
    result = await container.exec(["sh", "-c", script])
    assert result.exit_code == 0, result.stderr
    return result.stdout.decode().strip()


@pytest.mark.parametrize("size", [0, 1, 262_144, 262_145, 20_000_001])
async def test_a_file_is_written_and_read(container: WardenClient, size: int) -> None:
    data = os.urandom(size)
    await container.write("deep/down/file", data)
    assert await container.read("deep/down/file", limit=size) == data
    await container.write("deep/down/file", b"short")
    assert await container.read("deep/down/file", limit=LIMIT) == b"short"
    assert await shell(container, "ls -A deep/down") == "file"


async def test_a_file_has_the_requested_mode(container: WardenClient) -> None:
    await container.write("tool", b"#!/bin/sh\necho ran\n", mode=0o755)
    await container.write("private", b"", mode=0o600)
    assert await shell(container, "./tool; stat -c %a tool private") == "ran\n755\n600"


@pytest.mark.parametrize(
    "name", ["with space", "new\nline", "ünïcödé", "back\\slash", "-rf", "a'b\"c", "\udcff\udcfe", "..."]
)
async def test_any_name_that_linux_accepts(container: WardenClient, name: str) -> None:
    await container.write(f"dir/{name}", b"x")
    assert await container.read(f"dir/{name}", limit=1) == b"x"
    assert [entry.name for entry in await container.list("dir")] == [name]


@pytest.mark.parametrize("path", MALFORMED)
async def test_a_malformed_path_is_refused(container: WardenClient, env: RuntimeEnv, path: str) -> None:
    await container.exec(["mkdir", "a"])
    for attempt in (container.read(path, limit=LIMIT), container.list(path), container.write(path, b"x")):
        with pytest.raises(PathRefused):
            await attempt
    assert [entry.name for entry in await container.list()] in (["a"], [])


@pytest.mark.parametrize("path", ["folder/", "folder/.", "folder/..", ".", "folder/new/"])
async def test_a_write_needs_a_file_name(container: WardenClient, path: str) -> None:
    await container.exec(["mkdir", "folder"])
    with pytest.raises(PathRefused):
        await container.write(path, b"x")


async def test_missing_files_are_not_found(container: WardenClient) -> None:
    await container.write("file", b"x")
    for path in ("none", "none/none", "file/none", "file/.."):
        with pytest.raises(WardenFileNotFound):
            await container.read(path, limit=LIMIT)
    with pytest.raises(WardenFileNotFound):
        await container.list("none")


@pytest.mark.parametrize("path", ["folder", ".", "fifo", "socket", "link-to-fifo", "folder/../fifo"])
async def test_only_regular_files_are_read(container: WardenClient, path: str) -> None:
    bind = "import socket; socket.socket(socket.AF_UNIX).bind('socket')"
    await shell(container, f'mkdir folder; mkfifo fifo; ln -s fifo link-to-fifo; /usr/bin/python3 -c "{bind}"')
    async with asyncio.timeout(5):
        with pytest.raises(WardenNotAFile):
            await container.read(path, limit=LIMIT)


async def test_a_file_is_not_a_folder(container: WardenClient) -> None:
    await shell(container, "touch file; mkfifo fifo; mkdir folder")
    for path in ("file", "fifo"):
        with pytest.raises(WardenNotAFile):
            await container.list(path)
        with pytest.raises((WardenNotAFile, WardenFileNotFound)):
            await container.write(f"{path}/inner", b"x")
    with pytest.raises(WardenNotAFile):
        await container.write("folder", b"x")
    assert await shell(container, "ls -A") == "fifo\nfile\nfolder"


async def test_a_file_over_the_limit_is_refused(container: WardenClient) -> None:
    await shell(container, "truncate -s 3G sparse; head -c 101 /dev/zero > file")
    for path in ("sparse", "file"):
        with pytest.raises(WardenFileTooLarge):
            await container.read(path, limit=100)
    assert len(await container.read("file", limit=101)) == 101


async def test_a_growing_file_is_read_up_to_the_limit(container: WardenClient) -> None:
    await container.start("grow", ["sh", "-c", "while :; do head -c 1000000 /dev/zero >> file; done"], env={})
    limit, grown = 30_000_000, False
    async with asyncio.timeout(30):
        while not grown:
            try:
                assert len(await container.read("file", limit=limit)) <= limit
            except WardenFileNotFound:
                await asyncio.sleep(0.01)
            except WardenFileTooLarge:
                grown = True
    await container.stop("grow", grace=0)


async def test_links_inside_the_root_work(container: WardenClient) -> None:
    root = await shell(container, "pwd")
    await shell(
        container,
        "mkdir -p a/b; echo -n here > a/b/file; ln -s a/b/file relative; ln -s a folder; ln -s ../../a/b/file a/b/up; "
        f"ln -s {root}/a/b/file absolute; ln -s {root} whole; ln -s relative twice; ln -s a//b/./../b/file odd",
    )
    for path in (
        "relative",
        "folder/b/file",
        "a/b/up",
        "absolute",
        "whole/a/b/file",
        "twice",
        "odd",
        "whole/whole/odd",
    ):
        assert await container.read(path, limit=LIMIT) == b"here", path
    await container.write("folder/b/new", b"through a link")
    assert await shell(container, "cat a/b/new") == "through a link"


@pytest.mark.parametrize(
    "target",
    ["/etc/passwd", "/proc/self/environ", "/proc/1/environ", "../home/secret", "../../home/agent/secret", "/dev/zero",
     "a/../../home/secret", "/", "..", "/proc/self/root/etc/passwd", "/proc/self/cwd/file"],
)  # fmt: skip
async def test_links_outside_the_root_are_refused(container: WardenClient, target: str) -> None:
    await shell(container, f"mkdir a; ln -s {target} link; ln -s link again")
    for path in ("link", "again", "link/etc/passwd", "link/secret"):
        async with asyncio.timeout(5):
            with pytest.raises((PathRefused, WardenFileNotFound)):
                await container.read(path, limit=LIMIT)
        with pytest.raises((PathRefused, WardenFileNotFound)):
            await container.list(path)
        with pytest.raises(ExecRefused):
            await container.exec(["true"], cwd=path)


async def test_a_link_to_a_path_with_the_roots_prefix_is_refused(container: WardenClient) -> None:
    root = await shell(container, "pwd")
    await shell(container, f"ln -s {root}-evil/file link; ln -s {root}/../x up; ln -s {root}/.. parent")
    for path in ("link", "up", "parent", "parent/home/secret"):
        with pytest.raises(PathRefused):
            await container.read(path, limit=LIMIT)


async def test_loops_and_long_chains_of_links_are_refused(container: WardenClient) -> None:
    await shell(container, "ln -s loop loop; ln -s b a; ln -s a b; echo -n x > file; ln -s file l0")
    await shell(container, "i=0; while [ $i -lt 60 ]; do ln -s l$i l$((i+1)); i=$((i+1)); done; ln -s d/d/d/d/d d")
    for path in ("loop", "a", "l60", "d", "d/d/d"):
        async with asyncio.timeout(5):
            with pytest.raises(PathRefused):
                await container.read(path, limit=LIMIT)
    assert await container.read("l30", limit=LIMIT) == b"x"


async def test_a_write_replaces_a_link_and_never_follows_it(container: WardenClient, env: RuntimeEnv) -> None:
    await shell(
        container, "echo -n old > target; ln -s target inside; ln -s ../home/secret outside; ln -s nowhere dangling"
    )
    for name in ("inside", "outside", "dangling"):
        await container.write(name, b"new")
        assert await container.read(name, limit=LIMIT) == b"new"
        assert not (env.workspace() / name).is_symlink()
    assert await shell(container, "cat target; ls") == "old" + "dangling\ninside\noutside\ntarget"
    assert await container.read("secret", root="home", limit=LIMIT) == SECRET.encode()


@pytest.mark.parametrize("target", ["/tmp", "../home", "..", "/", "/etc"])
async def test_a_write_through_a_link_outside_the_root_is_refused(
    container: WardenClient, env: RuntimeEnv, target: str
) -> None:
    await shell(container, f"ln -s {target} uploads")
    for path in ("uploads/planted", "uploads/new/planted"):
        with pytest.raises(PathRefused):
            await container.write(path, b"x")
    assert not list(env.home().rglob("planted"))
    assert not Path("/tmp/planted").exists()


async def test_links_swapped_during_a_call_do_not_lead_outside(container: WardenClient, env: RuntimeEnv) -> None:
    await shell(container, "mkdir -p real; echo -n fine > real/secret; mkdir -p spare; cp real/secret spare/")
    swap = "while :; do ln -sfn ../home turn; ln -sfn real turn; rm turn; mv spare turn; mv turn spare; done"
    await container.start("swap", ["sh", "-c", f"exec 2>/dev/null; {swap}"], env={})
    seen: set[bytes] = set()
    for number in range(400):
        try:
            seen.add(await container.read("turn/secret", limit=LIMIT))
            await container.write(f"turn/planted{number}", b"x")
        except (WardenFileNotFound, PathRefused, WardenNotAFile):
            continue
    await container.stop("swap", grace=0)
    assert seen <= {b"fine"}
    assert [path.name for path in env.home().iterdir() if path.name.startswith("planted")] == []


async def test_links_swapped_during_a_walk_or_a_deletion_do_not_lead_outside(container: WardenClient) -> None:
    await container.write("outside/deep/file", b"x", root="home")
    swap = "while :; do mkdir -p turn/outside/deep; mv turn spare; ln -s ../home turn; rm turn; mv spare turn; done"
    await container.start("swap", ["sh", "-c", f"exec 2>/dev/null; {swap}"], env={})
    walked: set[str] = set()
    for _ in range(150):
        walked |= {entry.name for entry in await container.files.tree()}
        with contextlib.suppress(WardenFileNotFound, WardenFolderNotEmpty, PathRefused):
            await container.files.delete("turn/outside", recursive=True)
    await container.stop("swap", grace=0)
    assert "turn/outside/deep/file" not in walked
    assert await container.read("outside/deep/file", root="home", limit=1) == b"x"


async def test_a_walk_skips_what_it_may_not_enter_and_names_it(container: WardenClient) -> None:
    await shell(container, "mkdir -p a b/c; touch b/c/d; chmod 0 a")
    assert [entry.name for entry in await container.files.tree()] == ["a", "b", "b/c", "b/c/d"]
    assert [entry.name for entry in await container.files.tree("b", limit=1)] == ["b/c"]


async def test_deep_and_wide_trees_are_bounded(container: WardenClient) -> None:
    deepen = "import os\nfor _ in range(300): os.mkdir('d'); os.chdir('d')"
    await shell(container, f'mkdir deep wide; cd deep && /usr/bin/python3 -c "{deepen}"')
    for attempt in (container.files.tree("deep"), container.files.delete("deep", recursive=True)):
        with pytest.raises(WardenTooManyEntries):
            await attempt
    await shell(container, "cd wide && seq 1 100001 | xargs touch")
    with pytest.raises(WardenTooManyEntries):
        await container.files.tree("wide")
    await container.files.delete("wide", recursive=True)


async def test_a_write_is_atomic(container: WardenClient) -> None:
    watch = "until test -e go; do :; done; while test -e go; do wc -c < file; done | sort -u"
    await container.write("file", b"a" * 3_000_000)
    watching = asyncio.create_task(container.exec(["sh", "-c", watch]))
    await container.write("go", b"")
    for letter in (b"b", b"c", b"d"):
        await container.write("file", letter * 3_000_000)
    await shell(container, "rm go")
    assert (await watching).stdout in (b"3000000\n", b"")


async def test_an_interrupted_write_leaves_no_trace(container: WardenClient, env: RuntimeEnv) -> None:
    reader, writer = await env.runtime.connect("agent-1")
    writer.write(b'{"op":"write","root":"workspace","path":"file","mode":420,"size":1000000}\n')
    assert b'"ok": true' in await reader.readline()
    writer.write(b"x" * 1000)
    await writer.drain()
    writer.close()
    await writer.wait_closed()
    async with asyncio.timeout(10):
        while await shell(container, "ls -A"):
            await asyncio.sleep(0.01)


async def test_a_folder_without_permission_is_refused(container: WardenClient) -> None:
    if await shell(container, "mkdir closed; chmod 0 closed; id -u") == "0":
        pytest.skip("root has all permissions")
    with pytest.raises(PathRefused):
        await container.write("closed/file", b"x")
    with pytest.raises(PathRefused):
        await container.list("closed")


async def test_a_folder_is_listed_in_order(container: WardenClient) -> None:
    await shell(
        container, "mkdir folder; echo -n 12345 > file; chmod 640 file; ln -s /etc link; mkfifo pipe; touch .hidden"
    )
    entries = {entry.name: entry for entry in await container.list()}
    assert list(entries) == [".hidden", "file", "folder", "link", "pipe"]
    kinds = [entry.kind for entry in entries.values()]
    assert kinds == ["file", "file", "folder", "link", "other"]
    assert (entries["file"].size, entries["file"].mode) == (5, 0o640)
    assert abs(entries["file"].modified_at - datetime.now(UTC)) < timedelta(minutes=1)
    assert await container.list("folder") == []


async def test_a_long_list_is_cut(container: WardenClient) -> None:
    await shell(container, "mkdir many; cd many; seq 10500 | xargs touch")
    assert len(await container.list("many")) == 10_000


async def test_a_read_does_not_wait_for_a_lease(container: WardenClient) -> None:
    await container.write("file", b"x")
    hold = (
        "import fcntl, os, signal, time; signal.signal(signal.SIGIO, signal.SIG_IGN); "
        "fcntl.fcntl(os.open('file', os.O_RDWR), fcntl.F_SETLEASE, fcntl.F_WRLCK); open('held', 'w'); time.sleep(60)"
    )
    await container.start("hold", ["/usr/bin/python3", "-c", hold], env={}, restart=False)
    async with asyncio.timeout(10):
        while "held" not in [entry.name for entry in await container.list()]:
            await asyncio.sleep(0.01)
        with pytest.raises(WardenBusy):
            await container.read("file", limit=1)


async def test_other_calls_continue_during_a_large_transfer(container: WardenClient) -> None:
    data = bytes(50_000_000)
    writing = asyncio.create_task(container.write("big", data))
    answers = 0
    while not writing.done():
        await asyncio.wait_for(container.ping(), 5)
        answers += 1
    await writing
    assert answers > 0
    assert await container.read("big", limit=len(data)) == data
