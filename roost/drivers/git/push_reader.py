"""Reads what is pushed: one sandboxed script compares the commits, and has the objects until the push is applied.

All that it prints may come from hostile objects.
"""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, suppress
from dataclasses import replace

from roost.drivers.git.contract import EntryKind, GitBlob, GitEntry, GitFailed, PushedTree, RefUpdate
from roost.drivers.git.runner import id_lines, parse_blobs, parse_changes
from roost.drivers.sandbox.contract import CommandProcess

_DESCRIBED_AT_ONCE = 500
"""Objects whose names and descriptions fit into the buffers of a socket."""
_READ_BYTES = 256 * 1024


class PushReader(PushedTree):
    """`process` runs `scripts.READ_PUSH`."""

    def __init__(self, process: CommandProcess) -> None:
        self._process = process
        self._commit = ""

    async def open(self, quarantine: str, update: RefUpdate) -> RefUpdate:
        """Begin with the objects of an update, and return it with its description."""
        self._commit = update.new or ""
        reader, writer = self._process.control
        writer.write(f"{quarantine} {update.new} {update.old or ''}\n".encode())
        is_fast_forward = await reader.readline() == b"yes\n"
        ((_, kind, *_),) = await self._describe([self._commit])
        return replace(update, is_commit=kind == b"commit", is_fast_forward=is_fast_forward)

    async def list_changes(self) -> AsyncGenerator[GitEntry]:
        batch: list[GitEntry] = []
        async with aclosing(parse_changes(self._process.reader)) as entries:
            async for entry in entries:
                batch.append(entry)
                if len(batch) == _DESCRIBED_AT_ONCE:
                    for measured in await self._measure(batch):
                        yield measured
                    batch = []
        # Git opens the repository for the blobs now: later the quarantine, which its environment names, is gone.
        with suppress(ConnectionError):
            await self._process.send(b"-\n")
        if await self._process.reader.readline() != b"- missing\n":
            raise GitFailed("The commits of a push cannot be compared")
        for measured in await self._measure(batch):
            yield measured

    async def find_file(self, path: str) -> GitEntry | None:
        ((blob, *rest),) = await self._describe([f"{self._commit}:{path}"])
        return GitEntry(path, EntryKind.FILE, blob.decode(), int(rest[1])) if rest[:1] == [b"blob"] else None

    async def read_blobs(self, blobs: Sequence[str]) -> AsyncGenerator[GitBlob]:
        lines = b"".join([line async for line in id_lines(blobs)])
        sending = asyncio.create_task(self._process.send(lines))
        try:
            async for blob in parse_blobs(self._process.reader, blobs):
                yield blob
        finally:
            sending.cancel()
            await asyncio.wait([sending])

    async def _measure(self, entries: Sequence[GitEntry]) -> Sequence[GitEntry]:
        """Return entries with their sizes; what is deleted or a submodule has none."""
        without = (EntryKind.DELETED, EntryKind.SUBMODULE)
        sizes = iter(await self._describe([entry.blob for entry in entries if entry.kind not in without]))
        return [entry if entry.kind in without else replace(entry, size=_parse_size(next(sizes))) for entry in entries]

    async def _describe(self, names: Sequence[str]) -> Sequence[list[bytes]]:
        """Return what Git says of a few objects: a name with a type and a size, or with `missing`."""
        reader, writer = self._process.control
        writer.write("".join(f"{name}\n" for name in names).encode())
        lines = b""
        while lines.count(b"\n") < len(names):
            if not (chunk := await reader.read(_READ_BYTES)):
                raise GitFailed("The objects of a push cannot be read")
            lines += chunk
        return [line.split() for line in lines.splitlines()]


def _parse_size(description: Sequence[bytes]) -> int:
    try:
        return int(description[2])
    except (IndexError, ValueError):  # `missing`
        raise GitFailed("The repository lacks an object of a push") from None
