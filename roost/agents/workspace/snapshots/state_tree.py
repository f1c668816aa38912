"""The state of an agent as a tree of its home: what the engine's driver lists, without credentials (decision 0027).

Databases are copied in the container, each as it was at one moment, and the configuration is redacted here. A restore
changes nothing that a snapshot leaves out, whatever the stored tree holds.
"""

import json
from collections.abc import AsyncGenerator, AsyncIterable, Iterable, Sequence
from contextlib import aclosing, suppress
from dataclasses import replace
from pathlib import Path

from roost.agents.workspace.snapshots.index import WorkspaceIndex
from roost.drivers.engine.abilities.saved_state import DATABASE_FILES
from roost.drivers.engine.contract import Engine
from roost.warden_client.changes import PutFolder, RemovePath, TreeChange
from roost.warden_client.client import WardenClient
from roost.warden_client.errors import ExecRefused, PathRefused, WardenFileNotFound
from roost.warden_client.files import Stamp
from roost.warden_client.tree import FileReading, ScanEntry

_PROGRAM = Path(__file__).with_name("copy_databases.py").read_text()
_COPIES = ".roost/database-copies"
_COPY_SECONDS = 300.0


class StateTree:
    """Reads and changes the state like `WardenTree` does a workspace; `base` is the index of the last reading."""

    def __init__(self, warden: WardenClient, engine: Engine, base: WorkspaceIndex) -> None:
        self._warden = warden
        self._engine = engine
        self._saved = engine.saved_state
        self._base = base
        self._changed: dict[str, ScanEntry] = {}
        """Files whose stored content is not that of the home."""

    async def scan(self) -> AsyncGenerator[Sequence[ScanEntry]]:
        """Yield all entries of the state at once, a folder before its entries. Raises as `WardenTree.scan`."""
        entries: list[ScanEntry] = []
        logs: dict[str, Stamp] = {}
        left_out: set[str] = set()
        async with aclosing(self._warden.tree.scan("home")) as batches:
            async for batch in batches:
                for entry in batch:
                    if entry.path.rpartition("/")[0] in left_out or not self._saved.includes(entry.path):
                        if entry.kind == "folder":
                            left_out.add(entry.path)
                    elif database := self._find_database(entry.path):
                        if entry.path.endswith(DATABASE_FILES[0]):
                            logs[database] = entry.stamp
                    else:
                        entries.append(entry)
        yield [self._describe(entry, logs) for entry in entries]

    async def read_files(self, paths: Iterable[str]) -> AsyncGenerator[Sequence[FileReading]]:
        """Yield the files as they are stored. Raises as `WardenTree.read_files`."""
        wanted = list(paths)
        databases = [path for path in wanted if self._saved.is_database(path)]
        plain = [path for path in wanted if not self._saved.is_database(path)]
        async with aclosing(self._warden.tree.read_files(plain, "home")) as batches:
            async for batch in batches:
                yield [self._redact(file) if file.path == self._saved.configuration else file for file in batch]
        if databases:
            async with aclosing(self._read_databases(databases)) as batches:
                async for batch in batches:
                    yield batch

    async def apply(self, changes: AsyncIterable[TreeChange]) -> dict[str, Stamp]:
        """Change the state, as `WardenTree.apply` does; changes of what is not saved are left out."""
        return await self._warden.tree.apply(self._admit(changes), "home")

    async def _admit(self, changes: AsyncIterable[TreeChange]) -> AsyncGenerator[TreeChange]:
        async for change in changes:
            if not self._saved.includes_all(change.path) or self._find_database(change.path):
                continue
            if self._saved.is_database(change.path):
                if isinstance(change, PutFolder):
                    continue
                for end in DATABASE_FILES:  # those of the present database
                    yield RemovePath(change.path + end)
            yield change

    def _find_database(self, path: str) -> str | None:
        for end in DATABASE_FILES:
            if path.endswith(end) and self._saved.is_database(path.removesuffix(end)):
                return path.removesuffix(end)
        return None

    def _describe(self, entry: ScanEntry, logs: dict[str, Stamp]) -> ScanEntry:
        """Return the entry with a stamp that changes with all files of a database, and the size that is stored."""
        is_database = self._saved.is_database(entry.path)
        if entry.kind != "file" or not (is_database or entry.path == self._saved.configuration):
            return entry
        stamp, log = entry.stamp, logs.get(entry.path)
        if log is not None:
            settled = log.ctime_ns if entry.stamp.ctime_ns else 0
            stamp = Stamp(entry.stamp.ctime_ns, settled, entry.stamp.inode)
        before = self._base.get(entry.path)
        self._changed[entry.path] = entry._replace(stamp=stamp, size=entry.size if before is None else before.size)
        return self._changed[entry.path]

    def _redact(self, file: FileReading) -> FileReading:
        if file.error:
            return file
        small = bytes(file.content) if isinstance(file.content, memoryview) else None
        text = None if small is None else self._engine.redact_configuration(small)
        if text is None:
            return FileReading(file.path, PathRefused(), file.size, file.mode, file.stamp)
        return replace(file, content=memoryview(text), size=self._changed[file.path].size)

    async def _read_databases(self, paths: Sequence[str]) -> AsyncGenerator[Sequence[FileReading]]:
        request = {"folder": _COPIES, "paths": paths, "cleared": list(self._saved.cleared_tables)}
        names = {f"{_COPIES}/{number}": path for number, path in enumerate(paths)}
        try:
            with suppress(ExecRefused):  # a container without Python has no copies
                await self._warden.exec(
                    ["python3", "-I", "-c", _PROGRAM],
                    stdin=json.dumps(request).encode(),
                    timeout=_COPY_SECONDS,
                    output_limit=4096,
                )
            async with aclosing(self._warden.tree.read_files(names, "home")) as batches:
                async for batch in batches:
                    for file in batch:
                        file.path = names[file.path]
                        scanned = self._changed[file.path]
                        file.stamp, file.mode = scanned.stamp, scanned.mode
                        if isinstance(file.error, WardenFileNotFound):
                            file.error = PathRefused()
                    yield batch
        finally:
            with suppress(WardenFileNotFound, PathRefused):
                await self._warden.files.delete(_COPIES, root="home", recursive=True)
