"""Trees of a container, over every runtime: scanned and read as a whole, for any content of the workspace."""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator
from contextlib import aclosing

import pytest

from roost.core.problem import Problem
from roost.warden_client.changes import RemovePath
from roost.warden_client.client import WardenClient
from roost.warden_client.errors import PathRefused, WardenFileNotFound, WardenNotAFile, WardenTooManyEntries
from roost.warden_client.tree import STAGING_NAME
from tests.conformance.tree_fixtures import container, env
from tests.conformance.trees import apply, put, python, read, scan, shell

__all__ = ["container", "env"]


async def test_a_tree_is_scanned_in_order(container: WardenClient) -> None:
    await shell(
        container, "mkdir -p b/c b-d; echo -n 12345 > b/c/file; chmod 640 b/c/file; ln -s /etc/passwd a; mkfifo z"
    )
    found = await scan(container)
    assert list(found) == ["a", "b", "b/c", "b/c/file", "b-d", "z"]
    assert [entry.kind for entry in found.values()] == ["link", "folder", "folder", "file", "folder", "other"]
    assert found["a"].target == "/etc/passwd"
    assert (found["b/c/file"].size, found["b/c/file"].mode) == (5, 0o640)
    assert not any(entry.error for entry in found.values())


async def test_any_name_is_scanned_and_read(container: WardenClient) -> None:
    names = ["new\nline", "\udcff\udc80", "\udce4x", 'qu"ote', "ä" * 127, "x" * 255, "\U0001f426", "\uff5e", " ", "-rf"]
    await python(container, f"import os\nfor n in {names!a}: open(n, 'w').write('1'); os.symlink(n, n[:100] + '.link')")
    found = await scan(container)
    assert [path for path in found if not path.endswith(".link")] == sorted(names, key=os.fsencode)
    assert list(found) == sorted(found, key=os.fsencode)
    assert {entry.target for entry in found.values() if entry.kind == "link"} == set(names)
    assert [data for _, data in await read(container, *names)] == [b"1"] * len(names)
    await apply(container, *(put(name) for name in names))
    assert [data for _, data in await read(container, *names)] == [b"new"] * len(names)


async def test_a_stamp_changes_with_the_content(container: WardenClient) -> None:
    await apply(container, put("kept"), put("changed", b"old"))
    before = await scan(container)
    keep_time = "os.utime('changed', ns=(before.st_atime_ns, before.st_mtime_ns))"
    await python(container, f"import os; before = os.stat('changed'); open('changed', 'w').write('new'); {keep_time}")
    after = await scan(container)
    assert before["kept"] == after["kept"]
    assert before["changed"].size == after["changed"].size
    assert before["changed"].stamp != after["changed"].stamp
    await python(container, "import os\nopen('kept', 'w').write('1'); os.system('true')")
    assert (await scan(container))["kept"].stamp != after["kept"].stamp


async def test_a_change_within_a_tick_of_the_clock_changes_the_stamp(container: WardenClient) -> None:
    for number in range(20):
        await container.write("file", b"%03d" % number)
        before = (await scan(container))["file"].stamp
        await container.write("new", b"%03d" % (number + 1))
        inode = await shell(container, f"cat new > file; echo {number}")
        assert inode == str(number)
        assert (await scan(container))["file"].stamp != before


async def test_a_closed_folder_is_scanned_with_an_error(container: WardenClient) -> None:
    if await shell(container, "id -u") == "0":
        pytest.skip("root has all permissions")
    await shell(container, "mkdir -p a b/c d; touch a/x b/x b/c/d; chmod 0 a; chmod 400 b; chmod 0 d")
    found = await scan(container)
    assert {path: entry.error for path, entry in found.items()} == dict.fromkeys(("a", "b", "d"), "pathRefused")
    assert [entry.kind for entry in found.values()] == ["folder"] * 3
    (file, _), (other, _) = await read(container, "a/x", "b/x")
    assert isinstance(file.error, PathRefused)
    assert isinstance(other.error, PathRefused)


async def test_a_scan_names_odd_files_and_leaves_out_the_staging_folder(container: WardenClient) -> None:
    bind = "import socket; socket.socket(socket.AF_UNIX).bind('socket')"
    await shell(
        container,
        f"mkfifo fifo; truncate -s 3G sparse; mkdir {STAGING_NAME} a; touch {STAGING_NAME}/x a/{STAGING_NAME}",
    )
    await python(container, bind)
    found = await scan(container)
    assert list(found) == ["a", f"a/{STAGING_NAME}", "fifo", "socket", "sparse"]
    assert found["fifo"].kind == found["socket"].kind == "other"
    assert found["sparse"].size == 3 << 30


async def test_deep_trees_are_refused(container: WardenClient) -> None:
    deepen = "import os\nfor _ in range({}): os.mkdir('d'); os.chdir('d')"
    await python(container, deepen.format(256))
    assert len(await scan(container)) == 256
    await apply(container, RemovePath("d"))
    await python(container, deepen.format(300))
    with pytest.raises(WardenTooManyEntries):
        await scan(container)
    await apply(container, RemovePath("d"))
    assert await scan(container) == {}


async def test_links_swapped_during_a_scan_or_an_apply_do_not_lead_outside(container: WardenClient) -> None:
    await container.write("outside/deep/file", b"x", root="home")
    swap = "while :; do mkdir -p turn/outside/deep; mv turn spare; ln -s ../home turn; rm turn; mv spare turn; done"
    await container.start("swap", ["sh", "-c", f"exec 2>/dev/null; {swap}"], env={})
    found: set[str] = set()
    for number in range(60):
        found |= set(await scan(container))
        found |= {file.path for file, _ in await read(container, "turn/outside/deep/file") if not file.error}
        with contextlib.suppress(Problem):
            await apply(container, RemovePath("turn/outside"), put(f"turn/outside/planted{number}"))
    await container.stop("swap", grace=0)
    assert "turn/outside/deep/file" not in found
    assert await container.read("outside/deep/file", root="home", limit=1) == b"x"
    assert [entry.name for entry in await container.list("outside", root="home")] == ["deep"]


async def test_files_of_every_size_are_read_in_order(container: WardenClient) -> None:
    contents = {f"d{number % 3}/f{number}": os.urandom(size) for number, size in enumerate(
        [0, 1, 0, 131_072, 131_073, 5, 3_000_001, 0, 7, 1_000_000, 600_000, 2])}  # fmt: skip
    stamps = await apply(container, *(put(path, data) for path, data in contents.items()))
    found = await read(container, *contents, *contents)
    assert [(file.path, data) for file, data in found] == [*contents.items()] * 2
    assert [file.size for file, _ in found] == [len(data) for data in contents.values()] * 2
    assert not any(file.error or file.is_changed for file, _ in found)
    assert {file.path: file.stamp for file, _ in found} == stamps
    assert await read(container) == []


async def test_unreadable_files_have_an_error_in_their_place(container: WardenClient) -> None:
    await shell(
        container,
        "mkdir folder; mkfifo fifo; echo -n x > file; ln -s file link; ln -s folder turn; echo -n y > folder/f",
    )
    refused = [
        "",
        "/etc/passwd",
        "..",
        "a/../file",
        "./file",
        "a//b",
        "x" * 300,
        "a\0",
        "\ud800",
        "a/" * 300 + "b",
        "x" * 70_000,
    ]
    paths = ["gone", "folder", "fifo", "link", "turn/f", "file/x", *refused, "file"]
    async with asyncio.timeout(10):
        found = await read(container, *paths)
    assert [file.path for file, _ in found] == paths
    kinds = [
        WardenFileNotFound,
        *[WardenNotAFile] * 3,
        *[WardenFileNotFound] * 2,
        *[PathRefused] * len(refused),
        type(None),
    ]
    assert [type(file.error) for file, _ in found] == kinds
    assert found[-1][1] == b"x"


async def test_a_file_that_changes_while_it_is_read_is_known(container: WardenClient) -> None:
    for script in ("echo more >> file", "truncate -s 9M file", "chmod 600 file"):
        await container.write("file", bytes(20_000_000))
        async with aclosing(container.tree.read_files(["file"])) as batches:
            async for (file,) in batches:
                assert isinstance(file.content, AsyncIterator)
                length = len(await anext(file.content))
                await shell(container, script)
                length += sum([len(chunk) async for chunk in file.content])
                assert file.is_changed, script
                assert length <= 20_000_000


async def test_the_rest_of_a_content_is_skipped(container: WardenClient) -> None:
    await apply(container, put("big", bytes(5_000_000)), put("small", b"x"))
    async with aclosing(container.tree.read_files(["big", "small", "big", "small"])) as batches:
        assert [file.path async for batch in batches for file in batch] == ["big", "small", "big", "small"]
