"""A container's tree for tests: shell commands in it, and scan, read and apply as a whole."""

from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from contextlib import aclosing

from roost.warden_client.changes import PutFile, TreeChange
from roost.warden_client.client import WardenClient
from roost.warden_client.files import Stamp
from roost.warden_client.tree import FileReading, ScanEntry


async def shell(container: WardenClient, script: str) -> str:
    result = await container.exec(["sh", "-c", script])
    assert result.exit_code == 0, result.stderr
    return result.stdout.decode().strip()


async def python(container: WardenClient, script: str) -> None:
    assert (await container.exec(["/usr/bin/python3", "-c", script])).exit_code == 0


async def scan(container: WardenClient) -> dict[str, ScanEntry]:
    return {entry.path: entry async for batch in container.tree.scan() for entry in batch}


async def read(container: WardenClient, *paths: str) -> list[tuple[FileReading, bytes]]:
    async with aclosing(container.tree.read_files(paths)) as batches:
        return [(file, await _read_content(file.content)) async for batch in batches for file in batch]


async def _read_content(content: memoryview | AsyncIterator[bytes]) -> bytes:
    return bytes(content) if isinstance(content, memoryview) else b"".join([chunk async for chunk in content])


async def stream(changes: Iterable[TreeChange]) -> AsyncGenerator[TreeChange, None]:
    for change in changes:
        yield change


async def apply(container: WardenClient, *changes: TreeChange) -> dict[str, Stamp]:
    return await container.tree.apply(stream(changes))


def put(path: str, content: bytes = b"new", mode: int = 0o644) -> PutFile:
    return PutFile(path, mode, len(content), content)


async def chunks(*data: bytes) -> AsyncGenerator[bytes, None]:
    for chunk in data:
        yield chunk
