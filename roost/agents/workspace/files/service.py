"""Files of a workspace, through the agent's warden."""

from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Collection, Sequence
from contextlib import aclosing, asynccontextmanager

from roost.agents.registry.agent_runtimes import AgentRuntimes, WardenProblems, translate_warden_errors
from roost.agents.workspace.files import model
from roost.agents.workspace.files.model import FileRange, validate_new_path, validate_path
from roost.core.problem import Problem
from roost.warden_client import errors as warden_errors
from roost.warden_client.client import WardenClient
from roost.warden_client.files import FileStat, FolderEntry
from roost.warden_client.tree import ChangedPaths

_ROOTS = frozenset({"", ".", "/", "/workspace", "/workspace/"})


class AgentFileService:
    """Every method raises AgentNotFound, AgentOnOtherHost, AgentNotRunning and InvalidFilePath.

    A path that leads out of the workspace by a link is a missing file for those that read, and invalid for others.
    """

    def __init__(self, runtimes: AgentRuntimes) -> None:
        self._agents = runtimes.agents
        self._runtimes = runtimes

    async def read_file(self, agent_id: str, path: str) -> tuple[FileStat, bytes]:
        """Return status and content of a file.

        Raises WorkspaceFileNotFound, WorkspaceFileUnreadable and WorkspaceFileTooLarge.
        """
        async with self.open_file(agent_id, path, FileRange(length=model.FILE_LIMIT + 1)) as (found, content):
            data = b"".join([chunk async for chunk in content])
        if max(found.size, len(data)) > model.FILE_LIMIT:
            raise model.WorkspaceFileTooLarge
        return found, data

    async def upload_file(self, agent_id: str, filename: str, content: str) -> tuple[str, int]:
        """Write a base64 file to `uploads/`, replacing one of the same name; return its path and size.

        Raises InvalidFilename, InvalidFileContent, WorkspaceFileTooLarge, AgentDiskFull, and InvalidFilePath if the
        agent replaced `uploads` with something that is not a folder.
        """
        path = f"{model.UPLOADS}/{model.validate_filename(filename)}"
        data = model.decode_content(content)
        async with self._connect(agent_id, model.InvalidFilePath) as warden:
            await warden.write(path, data)
        return path, len(data)

    async def list_page(
        self,
        agent_id: str,
        path: str,
        cursor: str | None = None,
        *,
        recursive: bool = False,
        limit: int = model.PAGE_LIMIT,
    ) -> tuple[Sequence[FolderEntry], str | None]:
        """List a folder; return entries with paths from the workspace, and the cursor for those after the last one.

        Raises WorkspaceFileNotFound, NotAFolder and FolderTooLarge.
        """
        folder = "." if path in _ROOTS else validate_path(path).rstrip("/")
        after = model.decode_cursor(cursor, folder) if cursor else ""
        async with self._connect(agent_id, model.NotAFolder, model.WorkspaceFileNotFound) as warden:
            entries = await warden.files.tree(folder, after=after, recursive=recursive, limit=limit + 1)
        has_more = len(entries) > limit
        return entries[:limit], model.encode_cursor(entries[limit - 1].name) if has_more else None

    @asynccontextmanager
    async def open_file(
        self, agent_id: str, path: str, part: FileRange
    ) -> AsyncGenerator[tuple[FileStat, AsyncIterator[bytes]]]:
        """Open a file, and yield its status and the bytes of a part.

        Raises WorkspaceFileNotFound, WorkspaceFileUnreadable.
        """
        path = validate_path(path)
        async with (
            self._connect(agent_id, model.WorkspaceFileUnreadable, model.WorkspaceFileNotFound) as warden,
            warden.files.download(path, offset=part.offset, length=part.length) as opened,
        ):
            yield opened

    async def save_file(
        self,
        agent_id: str,
        path: str,
        content: AsyncIterable[bytes],
        *,
        executable: bool = False,
        tags: Collection[str] | None = None,
    ) -> int:
        """Write a file of any size once `content` has ended, replacing one, and return its size.

        With `tags` only in place of a file that has one of these entity tags, which the container compares when all
        is received, just before it replaces the file.
        Raises WorkspaceFileTooLarge, AgentDiskFull, FileNotAsExpected, and InvalidFilePath if a part of the path is not
        a folder.
        """
        path, mode = validate_new_path(path), 0o755 if executable else 0o644
        async with self._connect(agent_id, model.InvalidFilePath) as warden:
            expected = None if tags is None else model.parse_etags(tags)
            try:
                return await warden.files.upload(path, content, mode=mode, expected=expected)
            except warden_errors.WardenRequestUnknown:
                raise model.ConditionalWriteUnsupported from None

    async def delete(self, agent_id: str, path: str, *, recursive: bool = False) -> None:
        """Delete a file or a folder. Raises WorkspaceFileNotFound, FolderNotEmpty, FolderTooLarge."""
        path = validate_path(path)
        async with self._connect(agent_id, model.InvalidFilePath) as warden:
            await warden.files.delete(path, recursive=recursive)

    async def move(self, agent_id: str, source: str, target: str) -> None:
        """Rename a file or a folder. Raises WorkspaceFileNotFound, FileExists."""
        source, target = validate_path(source), validate_new_path(target)
        async with self._connect(agent_id, model.InvalidFilePath) as warden:
            await warden.files.move(source, target)

    async def make_folder(self, agent_id: str, path: str) -> None:
        """Create a folder with its parents, or keep it. Raises InvalidFilePath if a file is in its place."""
        path = validate_new_path(path)
        async with self._connect(agent_id, model.InvalidFilePath) as warden:
            await warden.files.make_folder(path)

    @asynccontextmanager
    async def watch(self, agent_id: str) -> AsyncGenerator[AsyncGenerator[ChangedPaths]]:
        """Watch the workspace, and yield its changes; the first is empty. Raises FilesNotWatched."""
        async with self._connect(agent_id, model.InvalidFilePath) as warden, aclosing(warden.tree.watch()) as changes:
            yield changes

    @asynccontextmanager
    async def _connect(
        self, agent_id: str, kind_error: type[Problem], link_error: type[Problem] = model.InvalidFilePath
    ) -> AsyncGenerator[WardenClient]:
        """Yield the agent's warden, and raise the errors of the API for the warden's.

        `kind_error` is raised if a path leads to another kind of file, `link_error` if it leads out of the workspace.
        """
        await self._agents.get_here(agent_id)
        problems = {**_PROBLEMS, warden_errors.PathRefused: link_error, warden_errors.WardenNotAFile: kind_error}
        with translate_warden_errors(problems):
            yield self._runtimes.get_warden(agent_id)


_PROBLEMS: WardenProblems = {
    warden_errors.WardenFileNotFound: model.WorkspaceFileNotFound,
    warden_errors.WardenFileTooLarge: model.WorkspaceFileTooLarge,
    warden_errors.WardenFileExists: model.FileExists,
    warden_errors.WardenFolderNotEmpty: model.FolderNotEmpty,
    warden_errors.WardenTooManyEntries: model.FolderTooLarge,
    warden_errors.WardenTreeChanged: model.FileNotAsExpected,
    warden_errors.WardenDiskFull: model.AgentDiskFull,
    warden_errors.WardenWatchRefused: model.FilesNotWatched,
}
