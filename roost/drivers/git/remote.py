"""Remote repositories: the server speaks HTTP, and Git reads what came in a sandbox without a network.

<folder>/<random id>/    the bare repository of one fetch, which is removed when it has been read
"""

import asyncio
import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TypeVar
from weakref import WeakValueDictionary

import httpx2

from roost.core import ids, log
from roost.core.problem import Problem, ProblemKind
from roost.core.sanitize import sanitize_line
from roost.drivers.git.contract import EntryKind, GitBlob, GitEntry, GitFailed
from roost.drivers.git.remote_client import RemoteClient
from roost.drivers.git.remote_contract import (
    MAX_REMOTE_BYTES,
    MAX_REMOTE_ENTRIES,
    REMOTE_URL_LIMIT,
    FetchedCommit,
    RemoteRefNotFound,
    RemoteRefs,
    RemoteRefused,
    RemoteRepositories,
    RemoteTimeout,
    RemoteUnavailable,
)
from roost.drivers.git.runner import GitRunner, feed_command, read_status
from roost.drivers.git.scripts import GitScript
from roost.drivers.sandbox.contract import Sandbox

_FETCH_SECONDS, _READ_SECONDS = 120.0, 60.0
_UNREADABLE = "Git cannot read the repository: its objects are malformed, missing or too large"
_TOTAL, _EACH = 8, 2
"""Repositories that are read at the same time, and those of one subject."""
_COMMIT = re.compile(r"[0-9a-f]{40}")
_RECEIVE = """
ulimit -t 60
ulimit -v 1048576
ulimit -f 524288
git init --bare --quiet --template= . 2>/dev/null || exit
echo "$1" > shallow
git index-pack --stdin --strict --threads=1 >/dev/null && git cat-file -e "$1^{commit}"
"""
"""Limits: 60 s of CPU time, 1 GiB of memory, 256 MiB for a file. The commit has no parents here, as `shallow` says."""

T = TypeVar("T")

_log = log.get_logger("git")

SubjectTransport = Callable[[str], httpx2.AsyncBaseTransport]
"""Makes the transport for requests of a subject; it reaches admitted addresses only, and may raise a Problem."""


class SandboxedRemotes(RemoteRepositories):
    def __init__(
        self, folder: Path, sandbox: Sandbox, transports: SubjectTransport, check_url: Callable[[str], None]
    ) -> None:
        """`check_url` raises a Problem for a URL that the operator's rules refuse."""
        self._folder = folder
        self._runner = GitRunner(folder, sandbox)
        self._transports = transports
        self._check_url = check_url
        self._total = asyncio.Semaphore(_TOTAL)
        self._each: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()
        self._cleaning: asyncio.Task[None] | None = None

    async def list_refs(self, subject: str, url: str) -> RemoteRefs:
        async with self._connect(subject, url) as client:
            return await client.list_refs()

    @asynccontextmanager
    async def fetch(self, subject: str, url: str, ref: str | None) -> AsyncGenerator[FetchedCommit]:
        await self._remove_remains()
        name = ids.new_id()
        try:
            async with self._connect(subject, url) as client:
                commit = find_commit(await client.list_refs(), ref)
                self._runner.prepare_folder()
                await self._receive(name, commit, client)
            yield _FetchedRepository(self._runner, name, commit, await self._list_entries(name, commit))
        finally:
            await self._runner.remove(name)

    @asynccontextmanager
    async def _connect(self, subject: str, url: str) -> AsyncGenerator[RemoteClient]:
        """Open a client within the limits of time and number."""
        each = self._each.setdefault(subject, asyncio.Semaphore(_EACH))
        try:
            self._check(url)
            async with asyncio.timeout(_FETCH_SECONDS), each, self._total:
                client = RemoteClient(self._transports(subject), url)
                async with aclosing(client):
                    yield client
        except TimeoutError:
            raise RemoteTimeout from None
        except RemoteRefused:
            raise
        except Problem as problem:
            raise _translate_problem(problem) from None

    def _check(self, url: str) -> None:
        if len(url) > REMOTE_URL_LIMIT or not url.isascii() or not url.isprintable() or set(url) & set(" \\#?"):
            raise RemoteRefused(
                f"The URL must have at most {REMOTE_URL_LIMIT} printable ASCII characters, no query and no fragment"
            )
        try:
            self._check_url(url)
        except httpx2.InvalidURL:
            raise RemoteRefused("The URL is malformed") from None

    async def _receive(self, name: str, commit: str, client: RemoteClient) -> None:
        script = GitScript(_RECEIVE, (commit,), is_writable=True)
        async with (
            aclosing(client.receive_pack(commit)) as pack,
            self._runner.run(name, script) as process,
            feed_command(process, pack),
        ):
            while await process.reader.read(4096):  # raises what the pack raises
                pass
            if status := await read_status(process):
                _log.info("git.fetch_refused", reason=sanitize_line(process.read_error()), status=status)
            if status != 0:
                raise RemoteRefused(_UNREADABLE)

    async def _list_entries(self, name: str, commit: str) -> Sequence[GitEntry]:
        entries: list[GitEntry] = []
        size = 0
        try:
            async with asyncio.timeout(_FETCH_SECONDS), aclosing(self._runner.list_tree(name, commit)) as found:
                async for entry in found:
                    if entry.size is None and entry.kind is not EntryKind.SUBMODULE:
                        raise RemoteRefused(f"The Git repository lacks the content of {entry.path[:200]!a}")
                    entries.append(entry)
                    size += entry.size or 0
                    if len(entries) > MAX_REMOTE_ENTRIES or size > MAX_REMOTE_BYTES:
                        most = f"{MAX_REMOTE_ENTRIES:,} files or {MAX_REMOTE_BYTES // 1024**2} MiB"
                        raise RemoteRefused(f"The Git repository has more than {most}")
        except TimeoutError:
            raise RemoteTimeout from None
        except GitFailed as problem:
            raise RemoteRefused(f"The Git repository cannot be read: {problem.message}") from None
        return entries

    async def _remove_remains(self) -> None:
        """Remove once what an earlier process left."""
        if self._cleaning is None:
            self._cleaning = asyncio.create_task(self._remove_all())
        await asyncio.shield(self._cleaning)

    async def _remove_all(self) -> None:
        for left in await asyncio.to_thread(lambda: list(self._folder.glob("*"))):
            with suppress(GitFailed):  # it is logged
                await self._runner.remove(left.name)


class _FetchedRepository(FetchedCommit):
    def __init__(self, runner: GitRunner, name: str, commit: str, entries: Sequence[GitEntry]) -> None:
        super().__init__(commit, entries)
        self._runner = runner
        self._name = name

    async def read_blobs(self, entries: Sequence[GitEntry]) -> AsyncGenerator[GitBlob]:
        deadline = asyncio.get_running_loop().time() + _READ_SECONDS
        blobs = self._runner.read_blobs(self._name, [entry.blob for entry in entries])
        async with aclosing(blobs), aclosing(_iterate_until(deadline, blobs)) as found:
            async for blob in found:
                yield replace(blob, content=_iterate_until(deadline, blob.content))


async def _iterate_until(deadline: float, items: AsyncIterator[T]) -> AsyncGenerator[T]:
    """Yield what Git reads, up to a time of the event loop. Raises RemoteTimeout, RemoteRefused."""
    while True:
        try:
            async with asyncio.timeout_at(deadline):
                item = await anext(items)
        except StopAsyncIteration:
            return
        except TimeoutError:
            raise RemoteTimeout from None
        except GitFailed:
            raise RemoteRefused(_UNREADABLE) from None
        yield item


def find_commit(refs: RemoteRefs, ref: str | None) -> str:
    """Return the commit of a branch, a tag, an id, or of the default branch. Raises RemoteRefNotFound."""
    if ref is None:
        found = refs.branches.get(refs.default_branch or "")
    else:
        short = ref.removeprefix("refs/")
        found = (
            refs.branches.get(short.removeprefix("heads/"))
            or refs.tags.get(short.removeprefix("tags/"))
            or (ref if _COMMIT.fullmatch(ref) else None)
        )
    if found is None:
        raise RemoteRefNotFound
    return found


def _translate_problem(problem: Problem) -> Problem:
    """Return the contract's problem for one of a connection: the URL is a field of a request, so that it is invalid."""
    if problem.kind in {ProblemKind.INVALID, ProblemKind.FORBIDDEN}:
        return RemoteRefused(problem.message)
    return problem if problem.kind is not ProblemKind.UNAVAILABLE else RemoteUnavailable(problem.message)
