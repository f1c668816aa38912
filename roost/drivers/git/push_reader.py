"""Reads what is pushed: one sandboxed script compares the commits, and has the objects until the push is applied.

All that it prints may come from hostile objects.
"""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import replace

from roost.drivers.git.commit_writer import FOLDER_MODE, parse_tree
from roost.drivers.git.contract import EntryKind, GitBlob, GitEntry, GitFailed, PushedTree, RefUpdate
from roost.drivers.git.runner import KINDS, GitRunner, feed_command, id_lines, parse_blobs, parse_changes
from roost.drivers.sandbox.contract import CommandProcess

_DESCRIBED_AT_ONCE = 500
"""Objects whose names and descriptions fit into the buffers of a socket."""
_READ_BYTES = 256 * 1024
_MAX_TOP_BYTES = 64 * 1024**2


class PushReader(PushedTree):
    """`process` runs `scripts.READ_PUSH`."""

    def __init__(self, runner: GitRunner, agent_id: str, process: CommandProcess) -> None:
        self._runner = runner
        self._agent_id = agent_id
        self._process = process
        self._quarantine = self._commit = ""

    async def open(self, quarantine: str, update: RefUpdate) -> RefUpdate:
        """Begin with the objects of an update, and return it with its description."""
        self._quarantine, self._commit = quarantine, update.new or ""
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
        if self._process.reader.at_eof():  # before the field that ends the changes
            raise GitFailed("The commits of a push cannot be compared")
        for measured in await self._measure(batch):
            yield measured

    def list_entries(self) -> AsyncGenerator[GitEntry]:
        return self._runner.list_tree(self._agent_id, self._commit, self._quarantine)

    async def find_file(self, name: str) -> GitEntry | None:
        size = _parse_size((await self._describe([f"{self._commit}^{{tree}}"]))[0])
        if size > _MAX_TOP_BYTES:
            raise GitFailed("The repository has a tree that is too large")
        try:
            await self._process.send(f"{self._commit}^{{tree}}\n".encode())
            await self._process.reader.readline()
            data = (await self._process.reader.readexactly(size + 1))[:-1]
        except (ConnectionError, EOFError, ValueError):
            raise GitFailed("The top folder of a push cannot be read") from None
        mode, blob = parse_tree(data).get(name.encode(), (FOLDER_MODE, b""))
        if mode not in KINDS:
            return None
        (entry,) = await self._measure([GitEntry(name, KINDS[mode], blob.hex())])
        return entry

    async def read_blobs(self, blobs: Sequence[str]) -> AsyncGenerator[GitBlob]:
        async with feed_command(self._process, id_lines(blobs), is_last=False):
            async for blob in parse_blobs(self._process.reader, blobs):
                yield blob

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
