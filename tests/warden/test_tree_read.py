"""Bulk reading by the warden as a process of this machine."""

from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path

from roost.drivers.runtime.fake import FakeRuntime
from tests.conformance.runtimes import open_runtime_env


async def test_nothing_is_read_that_the_client_does_not_accept(tmp_path: Path) -> None:
    async with open_runtime_env(FakeRuntime, tmp_path) as env:
        container = await env.container()
        await container.exec(["truncate", "-s", "3G", "sparse"])
        pid = (await container.ping()).pid
        async with aclosing(container.tree.read_files(["sparse", "sparse"])) as batches:
            async for (file,) in batches:
                assert isinstance(file.content, AsyncIterator)
                await anext(file.content)
                for _ in range(20):
                    await container.ping()
                assert _read_bytes(pid) < 20 << 20
                break


def _read_bytes(pid: int) -> int:
    return int(Path(f"/proc/{pid}/io").read_text().split()[1])
