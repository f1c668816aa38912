"""Changes of a container's tree, over every runtime: all or nothing, and nothing outside."""

import asyncio
import json
import os
import shutil
import struct
import subprocess
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path

import pytest

from roost.drivers.runtime.contract import ContainerSpec
from roost.drivers.runtime.docker.driver import DockerRuntime
from roost.warden_client.changes import ExpectEntry, PutFile, PutFolder, PutLink, RemovePath, TreeChange
from roost.warden_client.client import WardenClient
from roost.warden_client.errors import (
    PathRefused,
    WardenBusy,
    WardenDisconnected,
    WardenDiskFull,
    WardenFailed,
    WardenFileTooLarge,
    WardenTreeChanged,
)
from roost.warden_client.tree import STAGING_NAME
from tests.conformance.runtimes import CASES, Make, RuntimeEnv, limit_volumes, open_runtime_env, until
from tests.conformance.tree_fixtures import SECRET, container, env
from tests.conformance.trees import apply, chunks, put, scan, shell, stream

__all__ = ["container", "env"]


async def stuck() -> AsyncGenerator[bytes, None]:
    yield b"x"
    await asyncio.Event().wait()


async def test_changes_are_applied_together(container: WardenClient, env: RuntimeEnv) -> None:
    await shell(container, "mkdir -p old/deep kept; touch old/deep/x kept/x gone; ln -s x link")
    content = chunks(b"a" * 700_000, b"", b"b" * 700_000)
    stamps = await apply(
        container, put("kept/tool", b"#!", 0o4755), PutFile("big", 0o600, 1_400_000, content), put("new/x"),
        put("a/b/c/empty", b"", 0o666), PutFolder("mode", 0o750), RemovePath("old"), RemovePath("no"),
        PutLink("to", "\udcff/../x"), RemovePath("gone"), PutFolder("kept", 0o700), RemovePath("link/below"),
        PutFolder("new", 0o500),
    )  # fmt: skip
    found = await scan(container)
    assert list(found) == [
        "a",
        "a/b",
        "a/b/c",
        "a/b/c/empty",
        "big",
        "kept",
        "kept/tool",
        "kept/x",
        "link",
        "mode",
        "new",
        "new/x",
        "to",
    ]
    modes = {path: found[path].mode for path in ("a", "kept", "kept/tool", "mode", "big", "a/b/c/empty", "new")}
    assert [*modes.values()] == [0o755, 0o700, 0o755, 0o750, 0o600, 0o666, 0o500]
    assert found["to"].target == "\udcff/../x"
    assert stamps == {path: found[path].stamp for path in ("kept/tool", "big", "a/b/c/empty", "new/x")}
    assert await container.read("big", limit=2_000_000) == b"a" * 700_000 + b"b" * 700_000
    assert not list(env.workspace().glob(".roost*"))


async def test_files_links_and_folders_replace_each_other(container: WardenClient) -> None:
    await shell(container, "mkdir -p folder/deep/down link; touch file folder/deep/x; ln -s ../home turn; ln -s . here")
    await apply(
        container, put("folder"), put("file/inner"), PutLink("link", "x"), put("turn/planted"), PutFolder("here", 0o755)
    )
    found = await scan(container)
    assert {path: entry.kind for path, entry in found.items()} == {
        "file": "folder", "file/inner": "file", "folder": "file", "here": "folder",
        "link": "link", "turn": "folder", "turn/planted": "file",
    }  # fmt: skip
    await apply(container, RemovePath("turn"), put("turn"), put("here"))
    assert (await scan(container))["turn"].kind == "file"


async def test_an_apply_writes_nothing_outside(container: WardenClient, env: RuntimeEnv) -> None:
    await shell(container, "ln -s ../home up; ln -s /tmp tmp; mkdir a; ln -s ../../home a/up")
    for path in (
        "../x",
        "/tmp/planted",
        "a/../../x",
        "",
        ".",
        "a//x",
        "a/.",
        "x" * 256,
        "\ud800",
        "a\0b",
        STAGING_NAME,
        f"{STAGING_NAME}/x",
    ):
        for change in (put(path), RemovePath(path), PutFolder(path, 0o755), PutLink(path, "x")):
            with pytest.raises((PathRefused, WardenFailed)):
                await apply(container, put("first"), change)
    await apply(container, put("up/planted"), put("tmp/planted"), put("a/up/planted"))
    assert not list(env.home().rglob("planted"))
    assert not Path("/tmp/planted").exists()
    assert "first" not in await scan(container)
    assert await container.read("secret", root="home", limit=100) == SECRET.encode()


async def test_folders_without_permission_are_changed_and_keep_their_modes(container: WardenClient) -> None:
    await shell(
        container, "mkdir -p a/b gone/x/y; touch a/b/old a/b/kept gone/x/y/z; chmod 500 a/b a gone/x/y gone/x gone"
    )
    await apply(container, RemovePath("a/b/old"), put("a/b/new"), RemovePath("gone"))
    found = await scan(container)
    assert list(found) == ["a", "a/b", "a/b/kept", "a/b/new"]
    assert (found["a"].mode, found["a/b"].mode) == (0o500, 0o500)
    await shell(container, "chmod 0 a/b")
    await apply(container, put("a/b"))
    assert (await scan(container))["a/b"].kind == "file"


async def test_an_error_before_the_end_changes_nothing(container: WardenClient, env: RuntimeEnv) -> None:
    await apply(container, put("file", b"old"), put("folder/x"))
    before = await scan(container)

    async def failing() -> AsyncGenerator[TreeChange, None]:
        yield put("file")
        yield RemovePath("folder")
        raise OSError("the source is gone")

    with pytest.raises(OSError, match="the source is gone"):
        await container.tree.apply(failing())
    for content in (b"xx", chunks(b"x", b"x"), chunks(b"x", b"x", b"x", b"x")):
        await until(lambda: not list(env.workspace().glob(".roost*")))
        with pytest.raises(ValueError, match="bytes"):
            await apply(container, put("file"), RemovePath("folder"), PutFile("other", 0o644, 3, content))
    await until(lambda: not list(env.workspace().glob(".roost*")))
    waiting = asyncio.create_task(apply(container, put("file"), PutFile("other", 0o644, 1_000_000, stuck())))
    await until(lambda: list(env.workspace().glob(f"{STAGING_NAME}/*")))
    waiting.cancel()
    await until(lambda: not list(env.workspace().glob(".roost*")))
    assert await scan(container) == before


EXPECTED = "mkdir -p folder/deep; echo 1 > file; echo 2 > folder/deep/x; ln -s file link"
CHANGES = (
    *(put("file"), RemovePath("folder/deep/x"), put("folder"), RemovePath("link"), put("link/x"), put("absent/x")),
    RemovePath("gone"),
)


async def expect(container: WardenClient) -> list[TreeChange]:
    await shell(container, EXPECTED)
    found = await scan(container)
    while not all(entry.stamp.ctime_ns for entry in found.values()):  # they have not rested
        found = await scan(container)
    held = {path: found[path].stamp for path in ("file", "folder/deep/x")} | {"link": "file"}
    paths = ("folder", "link/x", "absent/x", "gone")
    return [ExpectEntry(path, entry) for path, entry in (*held.items(), *((path, None) for path in paths))]


async def test_an_apply_of_what_is_expected_changes_it(container: WardenClient) -> None:
    await apply(container, *await expect(container), *CHANGES)
    assert [*await scan(container)] == ["absent", "absent/x", "file", "folder", "link", "link/x"]


@pytest.mark.parametrize(
    "changed",
    ["echo 3 >> file", "cp -p file new; mv new file", "rm file", "rm file; mkdir file", "ln -sf /tmp link",
     "rm link; echo 3 > link", "echo 3 > folder/deep/x", "echo 3 > folder/deep/y", "ln -s /tmp folder/link",
     "mkfifo folder/pipe", "mkdir -p absent; echo 3 > absent/x", "echo 3 > absent", "ln -s . absent", "echo 3 > gone"],
)  # fmt: skip
async def test_an_apply_keeps_what_is_not_expected(container: WardenClient, env: RuntimeEnv, changed: str) -> None:
    expected = await expect(container)

    async def changes() -> AsyncGenerator[TreeChange]:
        for change in (*expected, *CHANGES):
            yield change
        await shell(container, changed)  # at last, when everything else is staged

    with pytest.raises(WardenTreeChanged):
        await container.tree.apply(changes())
    await until(lambda: not list(env.workspace().glob(".roost*")))
    kept = await scan(container)
    await shell(container, f"rm -r *; {EXPECTED}; {changed}")
    assert [entry[:4] for entry in kept.values()] == [entry[:4] for entry in (await scan(container)).values()]


async def test_a_second_apply_is_busy(container: WardenClient, env: RuntimeEnv) -> None:
    waiting = asyncio.create_task(apply(container, PutFile("file", 0o644, 1_000_000, stuck())))
    await until(lambda: list(env.workspace().glob(f"{STAGING_NAME}/*")))
    with pytest.raises(WardenBusy):
        await apply(container, put("other"))
    await container.tree.apply(stream([put("other")]), "home")
    waiting.cancel()
    await until(lambda: not list(env.workspace().glob(".roost*")))
    await apply(container, put("other"))
    assert list(await scan(container)) == ["other"]


@pytest.mark.parametrize(
    "leftover",
    ["mkdir -p {0}/a/b; touch {0}/0 {0}/a/b/x; chmod 0 {0}/a {0}", "touch {0}", "ln -s ../home {0}", "mkfifo {0}"],
)
async def test_leftovers_are_removed(container: WardenClient, env: RuntimeEnv, leftover: str) -> None:
    await shell(container, leftover.format(STAGING_NAME))
    await apply(container, put("file"))
    assert list(await scan(container)) == ["file"]
    assert [path.name for path in env.workspace().iterdir()] == ["file"]
    assert await container.read("secret", root="home", limit=100) == SECRET.encode()


async def test_an_apply_that_was_killed_is_repeated(container: WardenClient, env: RuntimeEnv) -> None:
    waiting = asyncio.create_task(apply(container, put("a/b"), PutFile("file", 0o644, 1_000_000, stuck())))
    await until(lambda: list(env.workspace().glob(f"{STAGING_NAME}/*/1")))
    await env.runtime.stop("agent-1", grace=0)
    with pytest.raises(WardenDisconnected):
        await waiting
    container = await env.container()
    assert await scan(container) == {}
    await apply(container, put("a/b"), put("file"))
    assert sorted(path.name for path in env.workspace().iterdir()) == ["a", "file"]


async def test_a_delete_only_container_refuses_content(env: RuntimeEnv) -> None:
    container = await env.container(ContainerSpec("agent-1", delete_only=True))
    await shell(container, "mkdir gone")
    with pytest.raises(WardenFileTooLarge):
        await apply(container, RemovePath("gone"), put("file", bytes(2_000_000)))
    assert list(await scan(container)) == ["gone"]
    await apply(container, RemovePath("gone"))
    assert await scan(container) == {}


@pytest.mark.parametrize("make", CASES)
async def test_a_full_disk_changes_nothing(small_disk: Path, make: Make) -> None:
    async with open_runtime_env(make, small_disk) as env:
        if isinstance(env.runtime, DockerRuntime):
            await limit_volumes(env.runtime, 24 << 20)
        container = await env.container()
        await apply(container, put("file", b"old"))
        with pytest.raises(WardenDiskFull):
            await apply(container, put("file"), *(put(f"big{number}", bytes(4 << 20)) for number in range(20)))
        assert list(await scan(container)) == ["file"]
        assert await container.read("file", limit=9) == b"old"
        await apply(container, put("file", bytes(4 << 20)))


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Return a folder on a disk of 24 MiB."""
    if os.geteuid() or shutil.which("mount") is None:
        pytest.skip("needs root to mount a disk")
    folder = tmp_path / "disk"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24m,mode=755", "roost-test", folder], check=True)
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


@pytest.mark.parametrize(
    "frames",
    [[b"d\0\0\0\1x"], [b'c[["file","a",420,5]]', b"x"], [b'c[["file","a",420,5]]', b'c[["remove","a"]]'],
     [b"cx"], [b"c7"], [b'c[["file"]]'], [b'c[["device","a"]]'], [b'c[["file","a","x",1]]'],
     [b'c[["file","a",1,-5]]', b"d12345", b"x"],
     [b'c[["expect","a"]]'], [b'c[["link","a",7]]'], [b'c[["link","a","b\\u0000"]]'], [b'c[["link","a",""]]']],
    ids=range(13),
)  # fmt: skip
async def test_malformed_changes_are_refused(container: WardenClient, env: RuntimeEnv, frames: list[bytes]) -> None:
    reader, writer = await env.runtime.connect("agent-1")
    writer.write(b'{"op": "apply", "root": "workspace"}\n')
    assert json.loads(await reader.readline())["ok"]
    for frame in frames:
        data = b"" if frame == b"x" else frame[1:]
        writer.write(struct.pack("!cI", frame[:1], len(data)) + data)
    async with asyncio.timeout(5):
        assert b'"ok": false' in await reader.read()
    writer.close()
    assert await scan(container) == {}
