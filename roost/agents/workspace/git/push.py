"""The rules of a push to an agent: what is accepted, and how it reaches the agent's files."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing

from roost.agents.workspace.git.build import PushBuild
from roost.agents.workspace.git.workspace import ExpectEntries, apply_commit
from roost.agents.workspace.scripts.errors import InvalidManifest
from roost.agents.workspace.scripts.manifest import MANIFEST_LIMIT, MANIFEST_PATH, ManifestScripts, parse_manifest
from roost.core import log
from roost.core.problem import Problem
from roost.drivers.git.contract import (
    MAIN,
    EntryKind,
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


class AgentPush(PushHandler):
    """One push. `lock` is held while the workspace changes.

    `prepare` makes the repository current, and returns what describes the workspace as `main` has it.
    `is_accepted`: the push may be recorded, and is applied or finished here.
    """

    def __init__(
        self,
        agent_id: str,
        repositories: GitRepositories,
        tree: WardenTree,
        host: str,
        prepare: Callable[[], Awaitable[ExpectEntries]],
        build: PushBuild,
        lock: asyncio.Lock,
    ) -> None:
        self.agent_id = agent_id
        self.is_accepted = False
        self.is_applied = False
        self._repositories = repositories
        self._tree = tree
        self._host = host
        self._prepare = prepare
        self._build = build
        self._lock = lock
        self._manifest = ManifestScripts()
        self._expect: ExpectEntries | None = None

    async def begin(self, updates: Sequence[RefUpdate]) -> None:
        if [update.ref for update in updates] != [MAIN]:
            raise PushRefused("Only the branch main can be pushed, alone: `git push origin HEAD:main`.")
        (update,) = updates
        if update.new is None:
            raise PushRefused("The branch main cannot be deleted.")
        if not update.is_commit:
            raise PushRefused("The branch main must be a commit.")
        try:
            self._expect = await self._prepare()
        except Problem as problem:
            raise PushRefused(f"The agent cannot take a push now: {problem.message}.") from problem
        if await self._repositories.head(self.agent_id) != update.old:
            raise PushRefused(_BEHIND)
        if not update.is_fast_forward:
            raise PushRefused(_REWRITES)

    async def check(self, tree: PushedTree) -> None:
        try:
            links, manifest = await _check_entries(tree)
            if links:
                async with aclosing(tree.read_files(links)) as targets:
                    paths = iter(links)
                    async for target in targets:
                        TreeRules.check_target(next(paths).path, target)
        except TreeRefused as refused:
            raise PushRefused(f"{refused.message}.") from refused
        if manifest is not None:
            self._manifest = await self._read_manifest(manifest, tree)
        self.is_accepted = True

    async def apply(self, update: RefUpdate, output: PushOutput) -> None:
        assert update.new is not None
        try:
            async with self._lock:
                count = await apply_commit(
                    self._repositories, self._tree, self.agent_id, update.old, update.new, self._expect
                )
        except WardenTreeChanged as problem:
            raise PushRefused(_CHANGED) from problem
        except _UNCHANGED as problem:
            raise PushRefused(f"The agent's files cannot be changed: {problem.message}.") from problem
        except Problem as problem:
            self.is_accepted = False
            _log.warning("push.interrupted", agent=self.agent_id, reason=problem.message)
            reason = f"{problem.message}. The push is finished at the next access to the agent's files."
            raise PushInterrupted(reason) from problem
        self.is_applied = True
        await output.say(f"Changed {count:,} {'path' if count == 1 else 'paths'} of the agent's files.")

    async def finish(self, output: PushOutput) -> None:
        try:
            await self._build.run(self.agent_id, self._manifest, output)
        except Problem as problem:
            await output.say(f"The scripts cannot be run: {problem.message}.")

    async def _read_manifest(self, entry: GitEntry, tree: PushedTree) -> ManifestScripts:
        if (entry.size or 0) > MANIFEST_LIMIT:
            raise PushRefused(f"{MANIFEST_PATH} is larger than {MANIFEST_LIMIT // 1024**2} MiB.")
        async with aclosing(tree.read_files([entry])) as contents:
            content = await anext(contents)
        try:
            return parse_manifest(content, self._host)
        except InvalidManifest as error:
            raise PushRefused(f"{error.message}.") from error


async def _check_entries(tree: PushedTree) -> tuple[Sequence[GitEntry], GitEntry | None]:
    """Check paths, kinds and sizes; return the links and the manifest. Raises PushRefused and TreeRefused."""
    files = size = 0
    links: list[GitEntry] = []
    manifest: GitEntry | None = None
    rules = TreeRules(files=(MANIFEST_PATH,))
    async with aclosing(tree.list_entries()) as entries:
        async for entry in entries:
            files, size = files + 1, size + (entry.size or 0)
            if files > MAX_FILES or size > MAX_TREE_BYTES:
                raise PushRefused(f"An agent has at most {MAX_FILES:,} files and {MAX_TREE_BYTES // 1024**3} GiB.")
            _check_entry(entry, rules)
            if entry.kind is EntryKind.LINK:
                links.append(entry)
            elif entry.path == MANIFEST_PATH:
                manifest = entry
    return links, manifest


def _check_entry(entry: GitEntry, rules: TreeRules) -> None:
    is_link = entry.kind is EntryKind.LINK
    if entry.kind is EntryKind.SUBMODULE:
        raise TreeRefused(entry.path, "is a submodule; an agent's repository holds all of its files itself")
    if is_git_path(entry.path, is_link=is_link):
        raise TreeRefused(entry.path, "is a name that Git reserves")
    if (entry.size or 0) > MAX_FILE_BYTES:
        raise TreeRefused(entry.path, f"is larger than {MAX_FILE_BYTES // 1024**3} GiB")
    rules.check_entry(entry.path, "link" if is_link else "file", target_size=entry.size or 0)
