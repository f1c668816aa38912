"""The rules of a push to an agent: what is accepted, how it reaches the agent's files, and the build after it."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial

from roost.agents.workspace.logs.model import LogMessage
from roost.agents.workspace.logs.service import LogService
from roost.agents.workspace.scripts.model import (
    BUILD,
    BUILD_TIMEOUT_SECONDS,
    MANIFEST_LIMIT,
    MANIFEST_PATH,
    InvalidManifest,
    ManifestScripts,
    ScriptState,
    parse_manifest,
)
from roost.agents.workspace.scripts.service import ScriptService
from roost.agents.workspace.snapshots.index import CommittedFiles
from roost.core import clock, log
from roost.core.problem import Problem
from roost.drivers.git.contract import (
    MAIN,
    EntryKind,
    GitBlob,
    GitEntry,
    GitRepositories,
    PushedTree,
    PushHandler,
    PushInterrupted,
    PushOutput,
    PushRefused,
    RefUpdate,
    is_git_path,
)
from roost.warden_client.changes import ExpectEntry, PutFile, PutLink, RemovePath, TreeChange
from roost.warden_client.errors import (
    ContainerNotRunning,
    PathRefused,
    WardenBusy,
    WardenDiskFull,
    WardenFileTooLarge,
    WardenTooManyEntries,
    WardenTreeChanged,
)
from roost.warden_client.tree import WardenTree
from roost.warden_client.tree_rules import TreeRefused, TreeRules
from roost.work import OperationWorker

ReadBlobs = Callable[[Sequence[str]], AsyncGenerator[GitBlob]]


async def apply_commit(
    repositories: GitRepositories, tree: WardenTree, agent_id: str, old: str | None, new: str
) -> None:
    """Change the workspace by what differs between two commits, whatever it holds. Raises as `WardenTree.apply`.

    Repeat it to complete a change that a crash interrupted.
    """
    entries = [entry async for entry in repositories.list_changes(agent_id, old, new)]
    await apply_entries(tree, entries, partial(repositories.read_blobs, agent_id))


async def apply_entries(
    tree: WardenTree, entries: Sequence[GitEntry], read_blobs: ReadBlobs, expected: Sequence[ExpectEntry] = ()
) -> None:
    async with aclosing(_tree_changes(entries, read_blobs, expected)) as changes:
        await tree.apply(changes, with_stamps=False)


async def _tree_changes(
    entries: Sequence[GitEntry], read_blobs: ReadBlobs, expected: Sequence[ExpectEntry]
) -> AsyncGenerator[TreeChange]:
    for condition in expected:
        yield condition
    for entry in entries:
        if entry.kind is EntryKind.DELETED:
            yield RemovePath(entry.path)
    written = [entry for entry in entries if entry.kind is not EntryKind.DELETED]
    async with aclosing(read_blobs([entry.blob for entry in written])) as blobs:
        position = iter(written)
        async for blob in blobs:
            entry = next(position)
            if entry.kind is EntryKind.LINK:
                target = b"".join([chunk async for chunk in blob.content])
                yield PutLink(entry.path, target.decode(errors="surrogateescape"))
            else:
                mode = 0o755 if entry.kind is EntryKind.EXECUTABLE else 0o644
                yield PutFile(entry.path, mode, blob.size, blob.content)


_SOURCE = "script/build"
_WAIT_SECONDS = BUILD_TIMEOUT_SECONDS + 30
_LAST_LINES_SECONDS = 0.3  # lines arrive a little later than the end of the process that wrote them


@dataclass(frozen=True)
class PushBuild:
    """Runs an agent's scripts after a push, and shows the output of the build to who pushed."""

    _queue: OperationWorker
    _scripts: ScriptService
    _logs: LogService

    async def run(self, agent_id: str, manifest: ManifestScripts, output: PushOutput) -> None:
        """Run the scripts of a manifest, or stop those of an earlier one; return when the build has ended.

        The scripts run to their end also if this is cancelled.
        """
        stored = (await self._scripts.list(agent_id)).values()
        is_configured = any(script.state is not ScriptState.NOT_CONFIGURED for script in stored)
        if not is_configured and manifest.build is None and manifest.start is None:
            return
        began = clock.utc_now()
        enqueue = partial(self._scripts.enqueue, agent_id=agent_id, rebuild=True)
        operation_id = await self._queue.db.write(enqueue)
        if manifest.build is None:
            return
        await output.say("Running the build script ...")
        await self._show_build(agent_id, operation_id, began, output)
        build = (await self._scripts.list(agent_id))[BUILD]
        succeeded = build.state is ScriptState.SUCCESS
        await output.say("The build succeeded." if succeeded else f"The build failed: {build.reason or build.state}")

    async def _show_build(self, agent_id: str, operation_id: str, began: datetime, output: PushOutput) -> None:
        finished = asyncio.create_task(self._queue.wait(operation_id, _WAIT_SECONDS))
        try:
            with self._logs.follow(agent_id) as messages:
                await _show_lines(messages, finished, began, output)
        except Problem as problem:  # too many or too slow readers; the build goes on
            await output.say(f"The output of the build cannot be shown: {problem.message}")
            await finished
        finally:
            finished.cancel()


async def _show_lines(
    messages: AsyncIterator[LogMessage], finished: asyncio.Task[object], began: datetime, output: PushOutput
) -> None:
    """Show the lines of the build that are written until it is finished."""
    following = asyncio.ensure_future(anext(messages))
    try:
        while True:
            waiting = (following,) if finished.done() else (following, finished)
            timeout = _LAST_LINES_SECONDS if finished.done() else None
            done, _ = await asyncio.wait(waiting, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
            if following in done:
                message = following.result()
                if message.source == _SOURCE and message.timestamp >= began:
                    await output.say(message.message)
                following = asyncio.ensure_future(anext(messages))
            elif not done:
                return
    except StopAsyncIteration:  # the agent is deleted
        return
    finally:
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)


MAX_FILES = 100_000
MAX_FILE_BYTES = 1024**3
MAX_TREE_BYTES = 4 * 1024**3

_BEHIND = "The agent has changed since your last pull. Run `git pull --rebase` and push again."
_REWRITES = "The push would remove commits of the agent. Run `git pull --rebase` and push again."
_CHANGED = (
    "The agent has changed files of the push meanwhile, or has files there that its repository leaves out.\n"
    "Run `git pull --rebase` and push again."
)
_UNCHANGED: tuple[type[Problem], ...] = (
    ContainerNotRunning,
    PathRefused,
    WardenBusy,
    WardenDiskFull,
    WardenFileTooLarge,
    WardenTooManyEntries,
)  # errors after which the workspace is as it was

_log = log.get_logger("git")


@dataclass(eq=False)
class AgentPush(PushHandler):
    """One push. `lock` is held while the workspace changes.

    `prepare` makes the repository current, and returns what the workspace has, which is what `main` has.
    `is_accepted`: the push may be recorded, and is applied or finished here.
    """

    agent_id: str
    _repositories: GitRepositories
    _tree: WardenTree
    _host: str
    _prepare: Callable[[], Awaitable[CommittedFiles]]
    _build: PushBuild
    _lock: asyncio.Lock
    is_accepted: bool = field(default=False, init=False)
    is_applied: bool = field(default=False, init=False)
    _manifest: ManifestScripts = field(default_factory=ManifestScripts, init=False)
    _committed: CommittedFiles = field(default_factory=CommittedFiles, init=False)
    _pushed: PushedTree | None = field(default=None, init=False)
    _changes: Sequence[GitEntry] = field(default=(), init=False)

    async def begin(self, updates: Sequence[RefUpdate]) -> None:
        if [update.ref for update in updates] != [MAIN]:
            raise PushRefused("Only the branch main can be pushed, alone: `git push origin HEAD:main`.")
        (update,) = updates
        if update.new is None:
            raise PushRefused("The branch main cannot be deleted.")
        if not update.is_commit:
            raise PushRefused("The branch main must be a commit.")
        try:
            self._committed = await self._prepare()
        except Problem as problem:
            raise PushRefused(f"The agent cannot take a push now: {problem.message}.") from problem
        if await self._repositories.head(self.agent_id) != update.old:
            raise PushRefused(_BEHIND)
        if not update.is_fast_forward:
            raise PushRefused(_REWRITES)

    async def check(self, tree: PushedTree) -> None:
        try:
            self._changes = await _check_changes(tree, self._committed)
            links = [entry for entry in self._changes if entry.kind is EntryKind.LINK]
            for entry, target in zip(links, await _read_contents(tree, links), strict=True):
                TreeRules.check_target(entry.path, target)
            manifest = await tree.find_file(MANIFEST_PATH)
        except TreeRefused as refused:
            raise PushRefused(f"{refused.message}.") from refused
        if manifest is not None:
            self._manifest = await self._read_manifest(manifest, tree)
        self._pushed, self.is_accepted = tree, True

    async def apply(self, update: RefUpdate, output: PushOutput) -> None:
        assert self._pushed is not None
        del update  # `check` has its changes
        try:
            async with self._lock:
                expected = self._committed.expect([entry.path for entry in self._changes])
                await apply_entries(self._tree, self._changes, self._pushed.read_blobs, expected)
        except WardenTreeChanged as problem:
            raise PushRefused(_CHANGED) from problem
        except _UNCHANGED as problem:
            raise PushRefused(f"The agent's files cannot be changed: {problem.message}.") from problem
        except Problem as problem:
            self.is_accepted = False
            _log.warning("push.interrupted", agent=self.agent_id, reason=problem.message)
            reason = f"{problem.message}. The push is finished once the agent's container can be reached."
            raise PushInterrupted(reason) from problem
        self.is_applied = True
        count = len(self._changes)
        await output.say(f"Changed {count:,} {'path' if count == 1 else 'paths'} of the agent's files.")

    async def finish(self, output: PushOutput) -> None:
        try:
            await self._build.run(self.agent_id, self._manifest, output)
        except Problem as problem:
            await output.say(f"The scripts cannot be run: {problem.message}.")

    async def _read_manifest(self, entry: GitEntry, tree: PushedTree) -> ManifestScripts:
        if (entry.size or 0) > MANIFEST_LIMIT:
            raise PushRefused(f"{MANIFEST_PATH} is larger than {MANIFEST_LIMIT // 1024**2} MiB.")
        (content,) = await _read_contents(tree, [entry])
        try:
            return parse_manifest(content, self._host)
        except InvalidManifest as error:
            raise PushRefused(f"{error.message}.") from error


async def _check_changes(tree: PushedTree, committed: CommittedFiles) -> Sequence[GitEntry]:
    """Check paths, kinds and sizes of what differs from `main`, and return it. Raises PushRefused and TreeRefused."""
    rules = TreeRules(files=(MANIFEST_PATH,))
    changes: list[GitEntry] = []
    files = size = 0
    async with aclosing(tree.list_changes()) as entries:
        async for entry in entries:
            changes.append(entry)
            if entry.kind is not EntryKind.DELETED:
                files, size = files + 1, size + (entry.size or 0)
                _check_totals(files, size)
                _check_entry(entry, rules)
    if committed.files + files > MAX_FILES or committed.size + size > MAX_TREE_BYTES:  # some may be replaced or deleted
        kept = committed.list_sizes_without({entry.path for entry in changes}, is_git_path)
        _check_totals(files + len(kept), size + sum(kept))
    return changes


def _check_totals(files: int, size: int) -> None:
    if files > MAX_FILES or size > MAX_TREE_BYTES:
        raise PushRefused(f"An agent has at most {MAX_FILES:,} files and {MAX_TREE_BYTES // 1024**3} GiB.")


async def _read_contents(tree: PushedTree, entries: Sequence[GitEntry]) -> Sequence[bytes]:
    """Return small files, or the targets of links."""
    if not entries:
        return ()
    async with aclosing(tree.read_blobs([entry.blob for entry in entries])) as blobs:
        return [b"".join([chunk async for chunk in blob.content]) async for blob in blobs]


def _check_entry(entry: GitEntry, rules: TreeRules) -> None:
    is_link = entry.kind is EntryKind.LINK
    if entry.kind is EntryKind.SUBMODULE:
        raise TreeRefused(entry.path, "is a submodule; an agent's repository holds all of its files itself")
    if is_git_path(entry.path, is_link=is_link):
        raise TreeRefused(entry.path, "is a name that Git reserves")
    if (entry.size or 0) > MAX_FILE_BYTES:
        raise TreeRefused(entry.path, f"is larger than {MAX_FILE_BYTES // 1024**3} GiB")
    rules.check_entry(entry.path, "link" if is_link else "file", target_size=entry.size or 0)
