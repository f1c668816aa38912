"""Check what a commit holds: the manifest, the README and the files of `workspace/`. Everything read is bounded."""

from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from itertools import takewhile

from roost.agents.library.templates.manifest import FAULTS_LIMIT, ManifestFault, ParsedManifest, parse_template_manifest
from roost.agents.library.templates.model import README_LIMIT, InspectedTemplate, TemplateFile
from roost.agents.workspace.scripts.model import MANIFEST_LIMIT, MANIFEST_PATH
from roost.core.sanitize import sanitize_line, sanitize_lines
from roost.drivers.git.contract import EntryKind, GitEntry
from roost.drivers.git.remote_contract import FetchedCommit
from roost.storage.content.receiver import ContentReceiver
from roost.storage.content.unixfs.directory import DirectoryEntry
from roost.storage.content.unixfs.entry_name import encode_entry_name
from roost.storage.content.unixfs.importer import DagTree
from roost.warden_client.tree_rules import TreeRefused, TreeRules

_EXECUTABLE = 0o755  # ordinary files store no permissions, so that they have the CIDs of uploads
WORKSPACE = "workspace/"
README = "README.md"
_FILES = (EntryKind.FILE, EntryKind.EXECUTABLE)
_POINTER = b"version https://git-lfs.github.com/spec/"
_POINTER_LIMIT = 1024


@dataclass
class _Findings:
    errors: list[ManifestFault] = field(default_factory=list[ManifestFault])
    warnings: list[ManifestFault] = field(default_factory=list[ManifestFault])

    def refuse(self, path: str, message: str) -> None:
        self.errors.append(ManifestFault(_printable(path), message))

    def warn(self, path: str, message: str) -> None:
        self.warnings.append(ManifestFault(_printable(path), message))


class TemplateInspection:
    """One commit and a folder in it."""

    def __init__(self, commit: FetchedCommit, path: str | None) -> None:
        self._commit = commit
        self._path = path
        prefix = f"{path.strip('/')}/" if path and path.strip("/") else ""
        inside = {entry.path.removeprefix(prefix): entry for entry in commit.entries if entry.path.startswith(prefix)}
        self._top = {name: entry for name, entry in inside.items() if "/" not in name}
        self._entries: Mapping[str, GitEntry] = {
            name.removeprefix(WORKSPACE): entry for name, entry in inside.items() if name.startswith(WORKSPACE)
        }

    async def run(self) -> InspectedTemplate:
        """Check everything and report it. Raises the errors of `FetchedCommit.read_blobs`."""
        found = _Findings()
        parsed = await self._read_manifest(found)
        readme = await self._read_readme(found)
        if not self._entries:
            found.warn("workspace", "the folder workspace/ is missing or empty; agents begin without files")
        rules = TreeRules(files=(MANIFEST_PATH,))
        for path, entry in self._entries.items():
            _check_entry(path, entry, rules, found)
        if not found.errors:
            await self._check_contents(found)
        errors = [*parsed.errors, *found.errors][:FAULTS_LIMIT]
        return InspectedTemplate(
            self._commit.commit,
            None if errors else parsed.manifest,
            readme,
            [TemplateFile(_printable(path), entry.size or 0) for path, entry in self._entries.items()],
            errors,
            [*parsed.warnings, *found.warnings][:FAULTS_LIMIT],
        )

    async def store_workspace(self, receiver: ContentReceiver) -> DagTree:
        """Store the files and links of a workspace that was checked, and return their UnixFS directory.

        Raises InvalidEntryName, MalformedContent, BlobStoreFailed and the errors of `FetchedCommit.read_blobs`.
        """
        folders: dict[str, list[DirectoryEntry]] = {"": []}
        if self._entries:
            async with aclosing(self._commit.read_blobs(list(self._entries.values()))) as blobs:
                paths = iter(self._entries.items())
                async for blob in blobs:
                    path, entry = next(paths)
                    if entry.kind is EntryKind.LINK:
                        tree = receiver.add_link(b"".join([chunk async for chunk in blob.content]))
                    else:
                        async for chunk in blob.content:
                            await receiver.write(chunk)
                        tree = await receiver.end_file(_EXECUTABLE if entry.kind is EntryKind.EXECUTABLE else None)
                    _add_entry(folders, path, tree)
        for folder in sorted(folders, key=lambda path: path.count("/"), reverse=True):
            if folder:
                _add_entry(folders, folder, receiver.add_folder(folders[folder]))
        return receiver.add_folder(folders[""])

    async def _read_manifest(self, found: _Findings) -> ParsedManifest:
        entry = self._top.get(MANIFEST_PATH)
        if entry is None:
            where = "the root of the repository" if not self._path else "the folder of the template"
            found.refuse(MANIFEST_PATH, f"{MANIFEST_PATH} is missing at {where}")
        elif entry.kind not in _FILES:
            found.refuse(MANIFEST_PATH, f"{MANIFEST_PATH} is not a regular file")
        elif (entry.size or 0) > MANIFEST_LIMIT:
            found.refuse(MANIFEST_PATH, f"{MANIFEST_PATH} is larger than {MANIFEST_LIMIT // 1024**2} MiB")
        else:
            return parse_template_manifest((await self._read([entry]))[0])
        return ParsedManifest(None)

    async def _read_readme(self, found: _Findings) -> str:
        entry = self._top.get(README)
        if entry is None or entry.kind not in _FILES:
            found.warn(README, f"{README} is missing")
        elif (entry.size or 0) > README_LIMIT:
            found.warn(README, f"{README} is left out: it is larger than {README_LIMIT // 1024} KiB")
        else:
            return sanitize_lines((await self._read([entry]))[0].decode("utf-8-sig", errors="replace"))
        return ""

    async def _check_contents(self, found: _Findings) -> None:
        """Check targets of links, and find pointers of Git LFS, whose files are somewhere else."""
        small = {
            path: entry
            for path, entry in self._entries.items()
            if entry.kind is EntryKind.LINK or 0 < (entry.size or 0) <= _POINTER_LIMIT
        }
        for (path, entry), content in zip(small.items(), await self._read(list(small.values())), strict=True):
            if entry.kind is EntryKind.LINK:
                _check_link(path, content, found)
            elif content.startswith(_POINTER):
                found.warn(WORKSPACE + path, "a pointer of Git LFS: agents get the pointer, not the file")

    async def _read(self, entries: Sequence[GitEntry]) -> list[bytes]:
        """Return the contents of small files."""
        if not entries:
            return []
        async with aclosing(self._commit.read_blobs(entries)) as blobs:
            return [b"".join([chunk async for chunk in blob.content]) async for blob in blobs]


def _check_entry(path: str, entry: GitEntry, rules: TreeRules, found: _Findings) -> None:
    where, kind = WORKSPACE + path, "link" if entry.kind is EntryKind.LINK else "file"
    if entry.kind is EntryKind.SUBMODULE:
        found.refuse(where, "is a submodule; a template holds all of its files itself")
        return
    try:
        rules.check_entry(path, kind, target_size=entry.size or 0)
    except TreeRefused as refused:
        found.refuse(where, refused.reason)


def _check_link(path: str, target: bytes, found: _Findings) -> None:
    """Refuse a link that leads out of the workspace, by itself or through another one, or that no workspace can carry.

    `..` may only be at the beginning, where it means folders of the tree: after a link it would mean the link's target.
    """
    try:
        TreeRules.check_target(path, target)
    except TreeRefused as refused:
        found.refuse(WORKSPACE + path, refused.reason)
    parts = target.split(b"/")
    up = len(list(takewhile(lambda part: part in {b"..", b"."}, parts)))
    levels = parts[:up].count(b"..")
    if target.startswith(b"/") or b".." in parts[up:] or levels > path.count("/"):
        found.refuse(WORKSPACE + path, "is a symbolic link that leads out of workspace/, or has .. after a name")


def _add_entry(folders: dict[str, list[DirectoryEntry]], path: str, tree: DagTree) -> None:
    """Add a tree to the folder that it is in, and make known the folders around that."""
    folder, _, name = path.rpartition("/")
    entry = DirectoryEntry(encode_entry_name(name), tree.cid, tree.size, tree.tsize)
    folders.setdefault(folder, []).append(entry)
    while folder:
        folder = folder.rpartition("/")[0]
        folders.setdefault(folder, [])


def _printable(path: str) -> str:
    return sanitize_line(path[:200])
