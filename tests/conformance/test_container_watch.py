"""Changes of a container's tree as they happen, over every runtime."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path

import pytest

from roost.warden_client.changes import PutFolder, RemovePath
from roost.warden_client.client import WardenClient
from roost.warden_client.errors import WardenBusy, WardenWatchRefused
from roost.warden_client.tree import STAGING_NAME, ChangedPaths
from tests.conformance.runtimes import CASES, RuntimeEnv, open_runtime_env
from tests.conformance.trees import put, python, shell, stream


@pytest.fixture(params=CASES)
async def env(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[RuntimeEnv]:
    async with open_runtime_env(request.param, tmp_path) as found:
        yield found


@pytest.fixture
async def container(env: RuntimeEnv) -> WardenClient:
    return await env.container()


Watch = AsyncGenerator[ChangedPaths, None]


@asynccontextmanager
async def watching(container: WardenClient) -> AsyncIterator[Watch]:
    async with asyncio.timeout(30), aclosing(container.tree.watch()) as changes:
        assert await anext(changes) == ChangedPaths(frozenset(), is_complete=True)
        yield changes


async def paths_until(changes: Watch, *expected: str) -> set[str]:
    """Return the changed paths once all that are expected are among them."""
    found: set[str] = set()
    while not found.issuperset(expected):
        batch = await anext(changes)
        assert batch.is_complete
        found |= batch.paths
    return found


async def test_changes_are_watched(container: WardenClient) -> None:
    await shell(container, "mkdir -p a/b; touch a/b/old a/gone; ln -s ../.. a/link")
    async with watching(container) as changes:
        await shell(container, "echo x >> a/b/old; rm a/gone; chmod 700 a/b; touch 'new\nline'; mv a/b/old a/moved")
        expected = ("a/b/old", "a/gone", "a/b", "new\nline", "a/moved")
        assert await paths_until(changes, *expected) == set(expected)
        await python(container, r"open(b'\xff', 'w')")
        await paths_until(changes, "\udcff")


async def test_new_and_moved_folders_are_followed(container: WardenClient) -> None:
    await shell(container, "mkdir -p old/x; mkdir closed; chmod 0 closed")
    async with watching(container) as changes:
        await shell(container, "mkdir -p new/deep; mv old kept; chmod 700 closed")
        await paths_until(changes, "new", "old", "kept", "closed")
        await shell(container, "touch new/deep/1 kept/x/2 closed/3")
        await paths_until(changes, "new/deep/1", "kept/x/2", "closed/3")
        await shell(container, "mv kept ../home/kept 2>/dev/null || mv kept /tmp; rm -r new; mkdir -p new/deep")
        await paths_until(changes, "new", "kept")
        await shell(container, "touch new/deep/4")
        await paths_until(changes, "new/deep/4")


async def test_links_are_not_followed(container: WardenClient) -> None:
    await container.write("folder/file", b"x", root="home")
    await shell(container, "ln -s ../home up")
    async with watching(container) as changes:
        await container.write("folder/file", b"y", root="home")
        await shell(container, "ln -s ../home/folder again; touch last")
        found = await paths_until(changes, "again", "last")
        await container.write("folder/file", b"z", root="home")
        await shell(container, "touch end")
        assert found | await paths_until(changes, "end") == {"again", "last", "end"}


async def test_an_apply_is_watched_without_its_staging(container: WardenClient) -> None:
    async with watching(container) as changes:
        await container.tree.apply(stream([put("a/file"), PutFolder("b", 0o755), RemovePath("none")]))
        found = await paths_until(changes, "a", "b")
        await shell(container, "touch a/more")
        found |= await paths_until(changes, "a/more")
        assert not [path for path in found if path.startswith(STAGING_NAME)]


async def test_more_changes_than_are_kept_mean_any_change(container: WardenClient) -> None:
    folder = "/".join(["a" * 250] * 12)  # fifty of its files are more characters than a batch has
    await shell(container, f"mkdir -p {folder}")
    async with watching(container) as changes:
        await shell(container, f"cd {folder}; seq 1 5000 | xargs touch")
        while (batch := await anext(changes)).is_complete:
            continue
        assert not batch.paths
        while "last" not in batch.paths:  # the next batches may have too many paths as well
            await shell(container, "touch last; mkdir -p new")
            batch = await anext(changes)
        await shell(container, "touch new/file")
        await paths_until(changes, "new/file")


async def test_checks_are_answered_after_the_changes_before_them(
    container: WardenClient, request: pytest.FixtureRequest
) -> None:
    if "fake" in request.node.name:
        pytest.skip("its warden sees the processes of the whole machine")
    checks = asyncio.Queue[None]()

    async def listed() -> AsyncIterator[None]:
        while True:
            yield await checks.get()

    async def check() -> list[ChangedPaths]:
        """Return the changes until the answer."""
        checks.put_nowait(None)
        found: list[ChangedPaths] = []
        while (item := await anext(changes)) != ChangedPaths(frozenset(), is_complete=True):
            found.append(item)
        return found

    async with asyncio.timeout(30), aclosing(container.tree.watch(checks=listed())) as changes:
        await anext(changes)
        assert await check() == []
        for number in range(20):
            await container.write(f"file{number}", b"x")
            assert f"file{number}" in {path for found in await check() for path in found.paths}
        assert await check() == []
        program = """import mmap, sys, time
with open(sys.argv[1], "w+b") as file:
    file.write(b"x")
    file.flush()
    memory = mmap.mmap(file.fileno(), 0)
open("mapped", "w").close()
while True:
    time.sleep(60)
"""
        for path, is_complete in (("/home/agent/file", True), ("file1", False)):
            await container.start("mapping", ["python3", "-c", program, path], env={})
            await paths_until(changes, "mapped")
            is_hidden = ChangedPaths(frozenset(), is_complete=False) in await check()
            assert is_hidden is not is_complete, "a mapping hides changes of the workspace"
            await container.stop("mapping", grace=0)
            await shell(container, "rm mapped")
            await check()
        assert await check() == []


async def test_a_tree_that_is_too_large_is_not_watched(container: WardenClient) -> None:
    async with watching(container) as changes:
        await python(container, "import os\nfor _ in range(260): os.mkdir('d'); os.chdir('d')")
        with pytest.raises(WardenWatchRefused):
            await paths_until(changes, "never")
    with pytest.raises(WardenWatchRefused):
        await anext(container.tree.watch())


async def test_a_workspace_that_cannot_be_read_is_not_watched(container: WardenClient) -> None:
    if await shell(container, "id -u") == "0":
        pytest.skip("root has all permissions")
    await shell(container, "chmod 300 .")
    with pytest.raises(WardenWatchRefused):
        await anext(container.tree.watch())


async def test_watches_are_bounded_and_end_with_their_clients(container: WardenClient) -> None:
    watches = [container.tree.watch() for _ in range(8)]
    for watch in watches:
        await anext(watch)
    with pytest.raises(WardenBusy):
        await anext(container.tree.watch())
    for watch in watches:
        await watch.aclose()
    async with asyncio.timeout(10):
        while True:
            try:
                async with watching(container):
                    return
            except WardenBusy:
                await asyncio.sleep(0.01)
