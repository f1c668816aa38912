"""Files of a container that are replaced only if they are as expected, over every runtime."""

import asyncio
import os
from collections.abc import AsyncIterator, Sequence

import pytest

from roost.warden_client.client import WardenClient
from roost.warden_client.errors import PathRefused, WardenTreeChanged
from roost.warden_client.files import Stamp
from tests.conformance.tree_fixtures import container, env

__all__ = ["container", "env"]


async def replace(container: WardenClient, path: str, data: bytes, expected: Sequence[Stamp] | None) -> int:
    async def content() -> AsyncIterator[bytes]:
        yield data

    return await container.files.upload(path, content(), expected=expected)


async def settled_stamp(container: WardenClient, path: str) -> Stamp:
    async with asyncio.timeout(5):
        while True:
            async with container.files.download(path) as (found, _):
                assert found.stamp is not None
                if found.stamp.ctime_ns:
                    return found.stamp


async def test_a_file_as_expected_is_replaced_once(container: WardenClient) -> None:
    await container.write("dir/file", b"one")
    stamp = await settled_stamp(container, "dir/file")
    assert await settled_stamp(container, "dir/file") == stamp
    other = Stamp(stamp.mtime_ns, stamp.ctime_ns + 1, stamp.inode)
    assert await replace(container, "dir/file", b"two", [other, stamp]) == 3
    with pytest.raises(WardenTreeChanged):
        await replace(container, "dir/file", b"three", [stamp])
    assert await container.read("dir/file", limit=9) == b"two"
    assert [entry.name for entry in await container.list("dir")] == ["file"]  # no leftover of the refused one


@pytest.mark.parametrize(
    "change",
    [
        "printf two > file",
        "printf two > other; mv other file",
        "touch -r file keep; printf two > file; touch -r keep file",
        "rm file",
        "rm file; mkdir file",
        "rm file; ln -s other file; printf two > other",
        "rm file; ln -s /etc/passwd file",
        "rm file; mkfifo file",
    ],
)
async def test_a_file_that_the_agent_changed_is_kept(container: WardenClient, change: str) -> None:
    await container.write("file", b"one")
    stamp = await settled_stamp(container, "file")
    await container.exec(["sh", "-c", change])
    before = (await container.exec(["ls", "-lA"])).stdout
    async with asyncio.timeout(5):
        with pytest.raises((WardenTreeChanged, PathRefused)):
            await replace(container, "file", b"mine", [stamp])
    assert (await container.exec(["ls", "-lA"])).stdout == before


async def test_any_file_is_expected(container: WardenClient) -> None:
    with pytest.raises(WardenTreeChanged):
        await replace(container, "file", b"new", [])
    await container.write("file", b"one")
    assert await replace(container, "file", b"new", []) == 3


async def test_a_stamp_of_a_recent_change_matches_nothing(container: WardenClient) -> None:
    await container.write("file", b"one")
    stamp = await settled_stamp(container, "file")
    with pytest.raises(WardenTreeChanged):
        await replace(container, "file", b"two", [stamp._replace(ctime_ns=0)])


async def test_the_file_behind_a_link_is_compared(container: WardenClient) -> None:
    await container.exec(["sh", "-c", "printf one > file; ln -s file link"])
    stamp = await settled_stamp(container, "link")
    assert await replace(container, "link", b"two", [stamp]) == 3
    assert await container.read("file", limit=9) == b"one"


async def test_one_of_many_writers_wins(container: WardenClient) -> None:
    await container.write("file", b"")
    stamp = await settled_stamp(container, "file")
    texts = [os.urandom(64) for _ in range(12)]
    results = await asyncio.gather(
        *(replace(container, "file", text, [stamp]) for text in texts), return_exceptions=True
    )
    won = [text for text, result in zip(texts, results, strict=True) if result == len(text)]
    assert won == [await container.read("file", limit=99)]
    assert sum(isinstance(result, WardenTreeChanged) for result in results) == len(texts) - 1
