"""Operations on files and folders of the workspace and the home. The last part of a changed path is never followed."""

from __future__ import annotations

import time
from itertools import islice

from .files import (
    MAX_DEPTH,
    SETTLED_NS,
    AtomicFile,
    change_lock,
    describe_entry,
    file_stamp,
    list_entries,
    open_file,
    open_folder,
    sorted_names,
    split_path,
)
from .light_imports import encode_name, os, stat, suppress
from .protocol import CHUNK_BYTES, RequestRefused, receive_some
from .waiting import run_in_thread

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator, Mapping

    from .files import Entry
    from .protocol import Connection, Json


WALK_BATCH = 500
ANY_SIZE = 1 << 62


class FileOperations:
    """One method per operation, which replies or raises RequestRefused or OSError."""

    def __init__(self, roots: Mapping[str, str]) -> None:
        self._roots = roots
        self.operations: dict[str, Callable[[Json, Connection], Awaitable[None]]] = {
            "list": self._list, "tree": self._tree, "read": self._read, "write": self._write,
            "download": self._download, "upload": self._upload, "replace": self._upload,
            "delete": self._delete, "move": self._move, "make_folder": self._make_folder,
        }  # fmt: skip

    async def _list(self, request: Json, connection: Connection) -> None:
        entries = await run_in_thread(list_entries, self._roots[request["root"]], request["path"])
        await connection.send_reply()
        await connection.send_items(entries)
        await connection.send_end()

    async def _tree(self, request: Json, connection: Connection) -> None:
        """Send entries below a folder in their order, as fast as the client reads them."""
        root, path, after = self._roots[request["root"]], request["path"], request["after"]
        walk = walk_tree(root, path, after, recursive=bool(request["recursive"]))
        remaining = int(request["limit"])
        await connection.send_reply()
        try:
            while batch := await run_in_thread(list, islice(walk, min(WALK_BATCH, remaining))):
                await connection.send_items(batch)
                remaining -= len(batch)
            await connection.send_end()
        finally:
            await run_in_thread(walk.close)

    async def _read(self, request: Json, connection: Connection) -> None:
        limit = int(request["limit"])
        fd = await run_in_thread(open_file, self._roots[request["root"]], request["path"], limit)
        try:
            await connection.send_reply()
            await _send_file(fd, connection, limit)
            if os.read(fd, 1):
                raise RequestRefused("fileTooLarge", "the file grew beyond the limit")
            await connection.send_end()
        finally:
            os.close(fd)

    async def _download(self, request: Json, connection: Connection) -> None:
        """Reply with the size, then send at most `length` bytes from `offset`, or from the end if that is negative."""
        fd = await run_in_thread(open_file, self._roots[request["root"]], request["path"], ANY_SIZE)
        try:
            info = os.fstat(fd)
            stamp = file_stamp(info, time.time_ns() - SETTLED_NS)
            mode = stat.S_IMODE(info.st_mode)
            await connection.send_reply(size=info.st_size, mode=mode, time=info.st_mtime, stamp=stamp)
            offset, length = int(request["offset"]), request["length"]
            os.lseek(fd, offset if offset >= 0 else max(info.st_size + offset, 0), 0)
            await _send_file(fd, connection, ANY_SIZE if length is None else int(length))
            await connection.send_end()
        finally:
            os.close(fd)

    async def _write(self, request: Json, connection: Connection) -> None:
        draft = await self._create_draft(request)
        try:
            await connection.send_reply()
            await _receive_file(draft, connection, int(request["size"]))
            await run_in_thread(draft.commit)
        finally:
            await run_in_thread(draft.close)
        await connection.send_end()

    async def _upload(self, request: Json, connection: Connection) -> None:
        """Receive a file of unknown size as frames; an empty frame is its end.

        `replace` puts it in place only of a file with one of the expected stamps.
        """
        expected: list[list[int]] | None = request["expected"] if request["op"] == "replace" else None
        draft, size = await self._create_draft(request), 0
        try:
            await connection.send_reply()
            while data := (await connection.read_frame())[1]:
                await run_in_thread(draft.write, data)
                size += len(data)
            await run_in_thread(draft.commit, expected)
        finally:
            await run_in_thread(draft.close)
        await connection.send_end(size=size)

    async def _delete(self, request: Json, connection: Connection) -> None:
        root, recursive = self._roots[request["root"]], bool(request["recursive"])
        await run_in_thread(delete_path, root, request["path"], recursive=recursive)
        await connection.send_reply()

    async def _move(self, request: Json, connection: Connection) -> None:
        await run_in_thread(move_path, self._roots[request["root"]], request["path"], request["target"])
        await connection.send_reply()

    async def _make_folder(self, request: Json, connection: Connection) -> None:
        await run_in_thread(make_folder, self._roots[request["root"]], request["path"])
        await connection.send_reply()

    async def _create_draft(self, request: Json) -> AtomicFile:
        return await run_in_thread(AtomicFile, self._roots[request["root"]], request["path"], int(request["mode"]))


async def _send_file(fd: int, connection: Connection, limit: int) -> None:
    while data := await run_in_thread(os.read, fd, min(limit, CHUNK_BYTES)):
        await connection.send_frame(b"d", data)
        limit -= len(data)


async def _receive_file(draft: AtomicFile, connection: Connection, size: int) -> None:
    """Write the content to the file; after an error, read the rest so that the client can read the reply."""
    failure: OSError | None = None
    while size > 0:
        data = await receive_some(connection.sock, size)
        size -= len(data)
        if failure is None:
            try:
                await run_in_thread(draft.write, data)
            except OSError as error:
                failure = error
    if failure:
        raise failure


def walk_tree(root: str, path: str, after: str, *, recursive: bool) -> Generator[Entry]:
    """Yield path, kind, size, mode and time of all entries of a folder, each folder before its entries.

    Entries of a folder are in the order of their names; `after` is the path of an entry that is skipped with all
    before it. Raises RequestRefused and OSError.
    """
    prefix = "" if path == "." else f"{path}/"
    if after and not after.startswith(prefix):
        raise RequestRefused("pathRefused", "the walk continues after a path in its folder")
    skipped = after.removeprefix(prefix).split("/") if after else []
    yield from _walk_folder(open_folder(root, path), prefix, skipped, recursive, 0)


def delete_path(root: str, path: str, *, recursive: bool) -> None:
    """Delete a file, a link or a folder; one that is not empty only if `recursive`. Raises RequestRefused, OSError."""
    parent, name = open_parent(root, path)
    try:
        if not stat.S_ISDIR(os.lstat(name, dir_fd=parent).st_mode):
            with change_lock:
                os.unlink(name, dir_fd=parent)
        elif recursive:
            _delete_folder(parent, name, 0)
        else:
            os.rmdir(name, dir_fd=parent)
    finally:
        os.close(parent)


def move_path(root: str, source: str, target: str) -> None:
    """Rename a file, a link or a folder; the target must not exist. Raises RequestRefused and OSError."""
    from_folder, from_name = open_parent(root, source)
    try:
        to_folder, to_name = open_parent(root, target, create=True)
        try:
            with suppress(FileNotFoundError):
                os.lstat(to_name, dir_fd=to_folder)
                raise RequestRefused("fileExists", "the target exists")
            with change_lock:
                os.rename(from_name, to_name, src_dir_fd=from_folder, dst_dir_fd=to_folder)
        finally:
            os.close(to_folder)
    finally:
        os.close(from_folder)


def make_folder(root: str, path: str) -> None:
    """Create a folder and its missing parents; an existing one is kept. Raises RequestRefused and OSError."""
    os.close(open_folder(root, path, create=True))


def open_parent(root: str, path: str, *, create: bool = False) -> tuple[int, str]:
    """Open the folder of a path, and return it with the last name. Raises RequestRefused and OSError."""
    *parents, name = split_path(path.rstrip("/"))
    if name in {"", ".", ".."}:
        raise RequestRefused("pathRefused", "the path names no file")
    return open_folder(root, "/".join([".", *parents]), create=create), name


def _walk_folder(folder: int, prefix: str, skipped: list[str], recursive: bool, depth: int) -> Generator[Entry]:
    """Walk an open folder, and close it. `skipped` are the parts of the path after which the walk begins."""
    try:
        for name in sorted_names(folder):
            if skipped and encode_name(name) < encode_name(skipped[0]):
                continue
            try:
                info = os.lstat(name, dir_fd=folder)
                is_done = bool(skipped) and name == skipped[0]
                if not is_done:
                    yield describe_entry(f"{prefix}{name}", info)
                if recursive and stat.S_ISDIR(info.st_mode):
                    child = _open_subfolder(folder, name, depth)
                    yield from _walk_folder(child, f"{prefix}{name}/", skipped[1:] if is_done else [], True, depth + 1)
            except (FileNotFoundError, NotADirectoryError, PermissionError):
                continue  # deleted or replaced during the walk, or closed by the agent
    finally:
        os.close(folder)


def _open_subfolder(folder: int, name: str, depth: int) -> int:
    if depth >= MAX_DEPTH:
        raise RequestRefused("tooMany", f"more than {MAX_DEPTH} nested folders")
    return os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)


def _delete_folder(parent: int, name: str, depth: int) -> None:
    folder = _open_subfolder(parent, name, depth)
    try:
        for child in os.listdir(folder):
            with suppress(FileNotFoundError):
                if stat.S_ISDIR(os.lstat(child, dir_fd=folder).st_mode):
                    _delete_folder(folder, child, depth + 1)
                else:
                    os.unlink(child, dir_fd=folder)
    finally:
        os.close(folder)
    with suppress(FileNotFoundError):
        os.rmdir(name, dir_fd=parent)
