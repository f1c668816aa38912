"""Folders of skills in the content store: write a bundle as a tree, and read a tree as a bundle.

Both ways keep every byte and whether a file is executable, so that a bundle has the same CID wherever it comes from.
"""

from contextlib import aclosing
from dataclasses import replace
from typing import Any

from roost.agents.library.skills.bundle import BYTES_LIMIT, DEPTH_LIMIT, FILES_LIMIT, SKILL_FILE, Bundle, read_files
from roost.agents.library.skills.errors import InvalidBundle
from roost.agents.library.skills.model import MARKER
from roost.storage.content.model import ContentScope
from roost.storage.content.reader import ContentReader
from roost.storage.content.receiver import ContentReceiver, add_folder_tree
from roost.storage.content.tree_walk import MemberKind, TreeMember, walk_tree
from roost.storage.content.unixfs.cid import Cid
from roost.storage.content.unixfs.importer import DagTree

FILE_MODE, PROGRAM_MODE = 0o644, 0o755
_EXECUTABLE = 0o111


def without_marker(bundle: Bundle) -> Bundle:
    """Return the bundle without our own file, which a folder from a workspace has."""
    return Bundle({path: file for path, file in bundle.files.items() if path.rpartition("/")[2] != MARKER})


async def write_bundle(receiver: ContentReceiver, bundle: Bundle) -> DagTree:
    """Write all files and folders, and return the tree of the top folder. Raises BlobStoreFailed."""
    top: dict[str, Any] = {}
    for path, file in sorted(bundle.files.items()):
        await receiver.write(file.content)
        *folders, name = path.split("/")
        folder = top
        for one in folders:
            folder = folder.setdefault(one, {})
        folder[name] = await receiver.end_file(PROGRAM_MODE if file.is_executable else None)
    return add_folder_tree(receiver, top)


async def read_bundle(reader: ContentReader, scope: ContentScope, root: Cid) -> Bundle:
    """Read and check a stored folder, whose `SKILL.md` must be at its top.

    Raises InvalidBundle, and the errors of `walk_tree` and of the reader, ContentDamaged among them.
    """
    files: dict[str, tuple[TreeMember, bytes]] = {}
    for member in await _list_files(reader, scope, root):
        found = await reader.stat(scope, member.cid)
        async with aclosing(reader.stream_file(scope, found)) as pieces:
            files[member.path] = member, b"".join([piece async for piece in pieces])
    if SKILL_FILE not in files:
        raise InvalidBundle(f"{SKILL_FILE} is missing at the top of the folder")
    bundle = read_files((path, content) for path, (_, content) in files.items())
    programs = {path for path, (member, _) in files.items() if (member.mode or 0) & _EXECUTABLE}
    return Bundle(
        {
            path: replace(file, is_executable=file.is_executable or path in programs)
            for path, file in bundle.files.items()
        }
    )


async def _list_files(reader: ContentReader, scope: ContentScope, root: Cid) -> list[TreeMember]:
    """List the files before one is read, so that a large folder is refused early."""
    files: list[TreeMember] = []
    walk = walk_tree(reader, scope, root, max_entries=2 * FILES_LIMIT, max_depth=DEPTH_LIMIT)
    async with aclosing(walk) as members:
        async for member in members:
            if member.kind is MemberKind.LINK:
                raise InvalidBundle(f"{member.path[:200]!r} is a symbolic link")
            if member.kind is MemberKind.FILE:
                if not member.path:
                    raise InvalidBundle("The CID is of a file; a skill is a folder")
                files.append(member)
    if sum(member.size for member in files) > BYTES_LIMIT:
        raise InvalidBundle(f"The files are larger than {BYTES_LIMIT // 1000**2} MB in all")
    return files
