"""Bare repositories of agents, on which Git runs in sandboxes.

<folder>/<agent id>/    the repository, or a cache of it; its owner is a host user of its own where the server is root
"""

import asyncio
import re
from collections import defaultdict
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager, nullcontext, suppress
from dataclasses import replace
from datetime import datetime
from functools import partial
from pathlib import Path

from roost.core import log
from roost.core.problem import Problem
from roost.core.sanitize import sanitize_line
from roost.drivers.git import scripts
from roost.drivers.git.backing_store import BackingStore
from roost.drivers.git.commit_writer import ChangeWriter, ObjectReader, TreeEditor, format_commit
from roost.drivers.git.contract import (
    MAIN,
    BadGitRequest,
    GarbageCollector,
    GitBlob,
    GitChange,
    GitEntry,
    GitFailed,
    GitRepositories,
    GitRequest,
    GitService,
    GitUnavailable,
    PushHandler,
    PushUnfinished,
    RepositoryCopier,
    RepositoryUsage,
)
from roost.drivers.git.pack_writer import ObjectKind
from roost.drivers.git.pkt_line import format_advertisement, insert_remark
from roost.drivers.git.push import PUSH_HOOKS, PushConversation, PushTarget
from roost.drivers.git.push_reader import PushReader
from roost.drivers.git.repository_files import draft_pack, file_errors, list_packs, read_reference, set_reference
from roost.drivers.git.runner import (
    PROBE,
    GitRunner,
    check_object_id,
    check_status,
    feed_command,
    id_lines,
    parse_changes,
    read_status,
    send_input,
)
from roost.drivers.git.scripts import PENDING, GitScript
from roost.drivers.sandbox.contract import CommandProcess, Sandbox

_PROTOCOL = re.compile(r"[0-9a-zA-Z]+(=[0-9a-zA-Z]+)?(:[0-9a-zA-Z]+(=[0-9a-zA-Z]+)?)*")
_READ_BYTES = 256 * 1024
_CAPABILITIES = GitRequest(GitService.UPLOAD_PACK, "version=2")
_CAPABILITIES_BYTES = 4096
"""Limit of an answer that is kept: it has no references, so that it never changes (gitprotocol-v2(5))."""
_PUSH_CAPABILITIES = "report-status delete-refs side-band-64k quiet atomic ofs-delta object-format=sha1 agent=roost"
"""What `git receive-pack` can do (gitprotocol-capabilities(5)); a deletion is refused with our message."""
_COLLECTION_SECONDS = 1800.0

_log = log.get_logger("git")


class SandboxedRepositories(GitRepositories):
    def __init__(
        self, folder: Path, sandbox: Sandbox, open_backing: Callable[[GitRunner], BackingStore] = BackingStore
    ) -> None:
        self._runner = GitRunner(folder, sandbox)
        self._backing = open_backing(self._runner)
        self.is_shared = self._backing.is_shared
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._collector = SandboxedCollector(self._runner, self._backing, self._locked)
        self.collector: GarbageCollector = self._collector
        self.copier: RepositoryCopier = SandboxedCopier(self._runner, self._backing, self._locked)
        self._capabilities: dict[str, bytes] = {}
        """Answers by agent: a Git that was taken over must not answer for others."""
        self._known = set[str]()
        """Agents whose repository this process has created or found."""

    async def check_available(self) -> str:
        self._runner.prepare_folder()
        try:
            version = await self._runner.query(PROBE, GitScript("git version"))
            await self._runner.remove(PROBE)
        except GitFailed as error:
            raise GitUnavailable(f"git cannot run in a sandbox: {error.message}") from None
        return version

    async def delete(self, agent_id: str) -> None:
        async with self._locks[agent_id]:
            await self._backing.delete(agent_id)
            await self._runner.remove(agent_id)
            self._known.discard(agent_id)
            self._capabilities.pop(agent_id, None)

    async def head(self, agent_id: str) -> str | None:
        state = await self._backing.read_state(agent_id)
        return state.main if state.generation else await self._runner.read_head(agent_id)

    async def set_head(self, agent_id: str, commit: str) -> None:
        async with self._locked(agent_id):
            await self._runner.query(agent_id, GitScript(scripts.CHECK_HEAD, (check_object_id(commit),)))
            await self._move_head(agent_id, commit)

    async def commit(
        self,
        agent_id: str,
        parent: str | None,
        base: str | None,
        changes: AsyncIterable[GitChange],
        message: str,
        author: str,
        time: datetime,
    ) -> str:
        path = self._runner.path(agent_id)
        async with self._locked(agent_id):
            if read_reference(path, PENDING):
                raise PushUnfinished
            with file_errors(), draft_pack(path) as draft:
                async with ObjectReader(self._runner, agent_id) as objects:
                    parent_tree = None if parent is None else await objects.find_tree(parent)
                    editor = TreeEditor(objects.read_tree)
                    if base is not None:
                        await editor.open_tree(await objects.find_tree(base))
                    await ChangeWriter(draft.pack, editor).write(changes)
                tree = await asyncio.to_thread(editor.write_trees, draft.pack.add_object)
                if parent is not None and tree == parent_tree:
                    commit = parent
                else:
                    data = format_commit(tree, parent, message, author, time)
                    commit = draft.pack.add_object(ObjectKind.COMMIT, data).hex()
                    await asyncio.to_thread(draft.publish)
            await self._move_head(agent_id, commit)
            if self._has_many_packs(agent_id):
                await self._merge_packs(agent_id)
        return commit

    async def list_changes(self, agent_id: str, old: str | None, new: str) -> AsyncGenerator[GitEntry]:
        arguments = [check_object_id(commit) for commit in (new, old) if commit is not None]
        await self._ensure_current(agent_id)
        async with self._runner.run(agent_id, GitScript(scripts.LIST_CHANGES, tuple(arguments))) as process:
            async for entry in parse_changes(process.reader):
                yield entry
            await check_status(process)

    async def read_blobs(self, agent_id: str, blobs: Sequence[str]) -> AsyncGenerator[GitBlob]:
        await self._ensure_current(agent_id)
        async with aclosing(self._runner.read_blobs(agent_id, blobs)) as found:
            async for blob in found:
                yield blob

    async def serve(self, agent_id: str, request: GitRequest) -> AsyncGenerator[bytes]:
        await self._ensure_exists(agent_id)
        if request.service is GitService.RECEIVE_PACK:  # without a command, since only `main` can be pushed to
            yield format_advertisement(MAIN, await self.head(agent_id), _PUSH_CAPABILITIES)
            return
        is_fixed = request == _CAPABILITIES
        if is_fixed and agent_id in self._capabilities:
            yield self._capabilities[agent_id]
            return
        async with (
            self._runner.run(agent_id, _service_script(request)) as process,
            feed_command(process, request.body),
        ):
            output = b""
            chunks = _read_chunks(process.reader)
            async for chunk in insert_remark(chunks, request.remark) if request.remark else chunks:
                output = output[:_CAPABILITIES_BYTES] + chunk if is_fixed else chunk
                yield chunk
            if status := await read_status(process):  # a client can cause it; a response that began tells its reason
                _log.info("git.request_failed", reason=sanitize_line(process.read_error()), status=status)
            if status != 0 and not output:
                raise BadGitRequest
        if is_fixed and len(output) <= _CAPABILITIES_BYTES:
            self._capabilities[agent_id] = output

    async def receive(self, agent_id: str, request: GitRequest, handler: PushHandler) -> AsyncGenerator[bytes]:
        self._runner.check_disk()
        await self._ensure_exists(agent_id)
        await self._collector.wait(agent_id)
        script = replace(_service_script(request), is_writable=True, hooks=PUSH_HOOKS)
        async with (
            self._runner.run(agent_id, script) as process,
            feed_command(process, request.body),
            self._runner.run(agent_id, GitScript(scripts.READ_PUSH)) as reading,  # starts while Git reads the pack
            self._conversation(agent_id, process, handler, PushReader(reading)) as talking,
        ):
            is_begun = False
            while chunk := await process.reader.read(_READ_BYTES):
                is_begun = True
                yield chunk
            if await talking and not is_begun:
                raise BadGitRequest
        with suppress(Problem):
            is_free = not self._locks[agent_id].locked()  # else the next change merges them
            if is_free and self._has_many_packs(agent_id):
                async with self._locked(agent_id):
                    await self._merge_packs(agent_id)

    async def find_unfinished_push(self, agent_id: str) -> tuple[str | None, str] | None:
        state = await self._backing.read_state(agent_id)
        if state.generation:
            return None if state.pending is None else (state.main, state.pending)
        pending = read_reference(self._runner.path(agent_id), PENDING)
        return None if pending is None else (await self._runner.read_head(agent_id), pending)

    async def finish_push(self, agent_id: str, *, undo: bool = False) -> None:
        async with self._locked(agent_id):
            await self._finish_push(agent_id, undo=undo)

    @asynccontextmanager
    async def _conversation(
        self, agent_id: str, process: CommandProcess, handler: PushHandler, pushed: PushReader
    ) -> AsyncGenerator[asyncio.Task[int]]:
        """Let the handler decide about a push, and finish one that was applied although its command ended."""

        def interrupt(ended: asyncio.Task[int]) -> None:
            if not ended.cancelled() and isinstance(error := ended.exception(), Exception):
                process.reader.set_exception(error)

        target = PushTarget(self._runner, self._backing, agent_id, self._locks[agent_id], partial(self.head, agent_id))
        push = PushConversation(process.control, handler, target, pushed)
        talking = asyncio.create_task(push.run())
        talking.add_done_callback(interrupt)
        try:
            yield talking
        finally:
            await push.settled.wait()
            talking.cancel()
            await asyncio.wait([talking])
            try:
                if push.is_applied:
                    await process.kill()
                    await self._backing.refresh(agent_id)
                    await self._finish_push(agent_id)
            finally:
                push.release_lock()

    async def _finish_push(self, agent_id: str, *, undo: bool = False) -> None:
        pending = read_reference(self._runner.path(agent_id), PENDING)
        script = scripts.UNDO_PUSH if undo else scripts.FINISH_PUSH
        moved = {} if undo or pending is None else {"main": pending}
        async with self._backing.save(agent_id, {"pending": None, **moved}):
            await self._runner.query(agent_id, GitScript(script, is_writable=True))

    async def _move_head(self, agent_id: str, commit: str) -> None:
        """Move `main`, durably, to a commit whose packs are durable."""
        async with self._backing.save(agent_id, {"main": commit}):
            with file_errors():
                await asyncio.to_thread(set_reference, self._runner.path(agent_id), MAIN, commit)

    def _has_many_packs(self, agent_id: str) -> bool:
        with file_errors():
            return sum(name.endswith(".pack") for name in list_packs(self._runner.path(agent_id))) > scripts.MAX_PACKS

    async def _merge_packs(self, agent_id: str) -> None:
        """Merge packs by size. The lock is held, so that a list of packs under the lock lacks none."""
        await self._runner.query(agent_id, GitScript(scripts.REPACK, is_writable=True))
        async with self._backing.save(agent_id):  # else a restart would fetch those that are gone from the folder
            pass

    @asynccontextmanager
    async def _locked(self, agent_id: str) -> AsyncGenerator[None]:
        """Hold the lock of a repository that exists and is current, without remains of commands that were killed."""
        async with self._locks[agent_id]:
            is_dirty = agent_id in self._runner.dirty and not self._runner.writers[agent_id]
            if agent_id not in self._known or is_dirty:
                self._runner.prepare_folder()
                await self._runner.query(agent_id, GitScript(scripts.CREATE, is_writable=True))
                self._runner.dirty.discard(agent_id)
                self._known.add(agent_id)
            await self._backing.refresh(agent_id)
            yield

    async def _ensure_exists(self, agent_id: str) -> None:
        if agent_id not in self._known:
            async with self._locked(agent_id):
                pass
        else:
            await self._ensure_current(agent_id)

    async def _ensure_current(self, agent_id: str) -> None:
        if not await self._backing.is_current(agent_id):
            async with self._locked(agent_id):
                pass


class SandboxedCopier(RepositoryCopier):
    """`lock` holds off commits and the application of pushes, and makes the folder current."""

    def __init__(
        self, runner: GitRunner, backing: BackingStore, lock: Callable[[str], AbstractAsyncContextManager[None]]
    ) -> None:
        self._runner, self._backing, self._lock = runner, backing, lock

    async def read(self, agent_id: str, changed_since: datetime | None = None) -> AsyncGenerator[bytes]:
        if await self._backing.measure_usage(agent_id) is None:
            return
        if not await self._backing.is_current(agent_id):
            async with self._lock(agent_id):
                pass
        since = 0 if changed_since is None else int(changed_since.timestamp())
        script = GitScript(scripts.READ_FILES, (str(since),))
        async with (
            nullcontext() if changed_since is None else self._lock(agent_id),
            self._runner.run(agent_id, script) as process,
        ):
            async for chunk in _read_chunks(process.reader):
                yield chunk
            await check_status(process)

    async def write(self, agent_id: str, archive: AsyncIterable[bytes]) -> None:
        self._runner.check_disk()
        async with self._lock(agent_id):
            async with self._runner.run(agent_id, GitScript(scripts.WRITE_FILES, is_writable=True)) as process:
                await send_input(process, archive)
                await check_status(process)
            pending = read_reference(self._runner.path(agent_id), PENDING)
            references = {"main": await self._runner.read_head(agent_id), "pending": pending}
            async with self._backing.save(agent_id, references):
                pass


class SandboxedCollector(GarbageCollector):
    """`lock` holds off commits and the application of pushes."""

    def __init__(
        self, runner: GitRunner, backing: BackingStore, lock: Callable[[str], AbstractAsyncContextManager[None]]
    ) -> None:
        self._runner, self._backing, self._lock = runner, backing, lock
        self._running: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def wait(self, agent_id: str) -> None:
        """Wait for the end of a collection; none begins before the caller waits for something else."""
        async with self._running[agent_id]:
            pass

    async def measure_usage(self, agent_id: str) -> RepositoryUsage | None:
        return await self._backing.measure_usage(agent_id)

    async def collect_garbage(self, agent_id: str, kept: Sequence[str], unreachable_before: datetime) -> bool:
        script = GitScript(scripts.COLLECT, (f"{unreachable_before.timestamp():.0f}",), is_writable=True)
        async with self._running[agent_id]:
            if self._runner.writers[agent_id]:
                return False
            try:
                async with self._lock(agent_id):
                    async with asyncio.timeout(_COLLECTION_SECONDS), self._runner.run(agent_id, script) as process:
                        await send_input(process, id_lines(kept))
                        await check_status(process)
                    async with self._backing.save(agent_id, is_collection=True):
                        pass
            except TimeoutError:
                raise GitFailed("The repository cannot be collected in time") from None
        return True


def _service_script(request: GitRequest) -> GitScript:
    text = scripts.ADVERTISE if request.body is None else scripts.SERVE
    protocol = request.protocol if _PROTOCOL.fullmatch(request.protocol) else ""
    return GitScript(text, (request.service.removeprefix("git-"),), protocol=protocol)


async def _read_chunks(reader: asyncio.StreamReader) -> AsyncGenerator[bytes]:
    while chunk := await reader.read(_READ_BYTES):
        yield chunk
