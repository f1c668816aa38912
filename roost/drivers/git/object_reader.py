"""Reading of commits and trees through one `git cat-file --batch` (git-cat-file(1)), verified by their ids."""

from contextlib import AsyncExitStack
from types import TracebackType
from typing import Self

from roost.drivers.git import scripts
from roost.drivers.git.command import GitScript
from roost.drivers.git.contract import GitFailed, UnknownCommit
from roost.drivers.git.pack_writer import ObjectKind, object_id
from roost.drivers.git.runner import GitRunner, check_object_id, check_status
from roost.drivers.sandbox.contract import CommandProcess

_MAX_BYTES = 64 * 1024**2
_TREE_LINE = len(b"tree ") + 40


class ObjectReader:
    """Objects of one repository. The command starts when the first one is read."""

    def __init__(self, runner: GitRunner, agent_id: str) -> None:
        self._runner = runner
        self._agent_id = agent_id
        self._stack = AsyncExitStack()
        self._process: CommandProcess | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.aclose()

    async def find_tree(self, commit: str) -> bytes:
        """Return the binary id of a commit's tree. Raises UnknownCommit, GitFailed."""
        data = await self._read_object(ObjectKind.COMMIT, bytes.fromhex(check_object_id(commit)))
        if data is None:
            raise UnknownCommit
        try:
            return bytes.fromhex(data[5:_TREE_LINE].decode())
        except ValueError:
            raise GitFailed("A commit is malformed") from None

    async def read_tree(self, tree: bytes) -> bytes:
        """Return the content of a tree. Raises GitFailed."""
        data = await self._read_object(ObjectKind.TREE, tree)
        if data is None:
            raise GitFailed("The repository lacks a tree")
        return data

    async def _read_object(self, kind: ObjectKind, oid: bytes) -> bytes | None:
        """Return an object, None if there is none of that kind."""
        if self._process is None:
            self._process = await self._stack.enter_async_context(
                self._runner.run(self._agent_id, GitScript(scripts.READ_OBJECTS))
            )
        reader = self._process.reader
        try:
            await self._process.send(b"%b\n" % oid.hex().encode())
            head = (await reader.readline()).split()
            if head[1:] == [b"missing"]:
                return None
            _, found, size = head
            if int(size) > _MAX_BYTES:
                raise GitFailed("The repository has a tree that is too large")
            data = (await reader.readexactly(int(size) + 1))[:-1]
        except (ConnectionError, EOFError, ValueError):
            await check_status(self._process)
            raise GitFailed from None
        if found != kind.name.lower().encode():
            return None
        if object_id(kind, data) != oid:
            raise GitFailed("The repository has a damaged object")
        return data
