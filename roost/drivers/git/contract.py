"""Contract of the Git repositories of agents: one bare repository each, with the branch `main` (decision 0024).

Who pushes is hostile: commands run isolated, within limits, and no configuration, hook or attribute of a pushed tree
takes effect. A commit or a head that a method has returned survives a crash and a loss of power.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from roost.core.problem import InvalidInput, NotFound, Problem, ServiceUnavailable

MAIN = "refs/heads/main"
MAX_PACK_BYTES = 1024**3
"""Maximum size of the pack of one push."""
MAX_REPOSITORY_BYTES = 8 * MAX_PACK_BYTES
"""Size from which a repository takes no push."""

# Names that Git reserves in trees, in every disguise that a file system of a client may see through, by the rules of
# Git's `verify_path` with `core.protectHFS` and `core.protectNTFS`. A tree with such a name could overwrite the
# repository of who checks it out, so clients refuse all of it.
_IGNORED_BY_HFS = re.compile("[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]")
_FLAGS = re.IGNORECASE | re.ASCII | re.DOTALL
_END = r"[. ]*(?::.*)?"
_GIT = re.compile(rf"(?:\.git|git~1){_END}", _FLAGS)
_SHORT = "|".join(rf"{'gi7eba'[:kept]}~[1-9][0-9]{{{6 - kept}}}" for kept in range(7))
_MODULES = re.compile(rf"(?:\.gitmodules|gitmod~[1-4]|{_SHORT}){_END}", _FLAGS)


class GitUnavailable(ServiceUnavailable):
    """The machine has no Git, or cannot start a sandbox for it; the log says why."""

    message = "Git is not available on this server"


class GitOutcomeUnknown(GitUnavailable):
    message = "The database is away, so that it is not known whether the change was stored"


class GitDiskFull(ServiceUnavailable):
    message = "The server has too little disk space for a push"


class GitFailed(Problem):
    """A command of Git failed; the log has its reason."""

    message = "The agent's Git repository cannot be used"


class BadGitRequest(InvalidInput):
    """Git could not read the request of a client."""

    message = "The request is not one of Git's smart protocol"


class UnknownCommit(NotFound):
    message = "The repository has no such commit"


class PushUnfinished(Problem):
    """A push was interrupted after its files may have reached the workspace; it is to be finished first."""

    message = "An interrupted push is not finished yet"


@dataclass(frozen=True)
class GitFile:
    """A file to commit. Paths have lone surrogates for bytes that are no UTF-8; `content` has `size` bytes."""

    path: str
    size: int
    content: bytes | AsyncIterable[bytes]
    is_executable: bool = False


@dataclass(frozen=True)
class GitLink:
    """A symbolic link to commit."""

    path: str
    target: str


@dataclass(frozen=True)
class GitDeletion:
    """A file, or a folder with all below it, to remove; it may be missing."""

    path: str


GitChange = GitFile | GitLink | GitDeletion


class EntryKind(StrEnum):
    FILE = "file"
    EXECUTABLE = "executable"
    LINK = "link"
    SUBMODULE = "submodule"
    DELETED = "deleted"


@dataclass(frozen=True)
class GitEntry:
    """An entry of a tree, or one that differs between two; `size` is None where it was not asked for."""

    path: str
    kind: EntryKind
    blob: str
    size: int | None = None


@dataclass(frozen=True)
class GitBlob:
    """A stored file or link; `content` ends when the next blob is taken."""

    id: str
    size: int
    content: AsyncIterator[bytes]


class GitService(StrEnum):
    UPLOAD_PACK = "git-upload-pack"
    RECEIVE_PACK = "git-receive-pack"


@dataclass(frozen=True)
class GitRequest:
    """A request of the smart protocol; without a body it asks for the advertisement of references.

    protocol: value of the header `Git-Protocol`, empty without. remark: what Git shows with a pack.
    """

    service: GitService
    protocol: str = ""
    body: AsyncIterable[bytes] | None = None
    remark: str = ""


@dataclass(frozen=True)
class RefUpdate:
    """An update that a push wants; None is the object of a reference that does not exist.

    is_commit: the new object is a commit. is_fast_forward: it descends from the old one.
    """

    ref: str
    old: str | None
    new: str | None
    is_commit: bool
    is_fast_forward: bool


@dataclass(frozen=True)
class RepositoryUsage:
    """size: bytes of its packs. changed_at: of the last change of them. collected_at: of the last collection.

    A repository that was never collected has the time of its creation instead.
    """

    size: int
    changed_at: datetime
    collected_at: datetime


class PushRefused(Exception):  # noqa: N818 - not a failure: its message is shown to who pushes
    """The server does not accept a push; the message has one or more lines."""


class PushInterrupted(PushRefused):
    """A push is not complete, but may have been applied in part: its record stays, so that it is finished later."""


class PushOutput(ABC):
    @abstractmethod
    async def say(self, text: str) -> None:
        """Show lines to who pushes; ignored when the connection has ended."""


class PushedTree(ABC):
    """The tree of a push. It can be read until the push is applied."""

    @abstractmethod
    def list_changes(self) -> AsyncGenerator[GitEntry]:
        """Yield what differs from the old commit, as `GitRepositories.list_changes` does, with sizes. Call it first."""

    @abstractmethod
    async def find_file(self, path: str) -> GitEntry | None:
        """Return a file, with its size; a link is found as a file, too."""

    @abstractmethod
    def read_blobs(self, blobs: Sequence[str]) -> AsyncGenerator[GitBlob]:
        """Yield blobs as `GitRepositories.read_blobs` does."""


class PushHandler(ABC):
    """Decides about a push and carries it out. The methods are called in this order, each at most once."""

    @abstractmethod
    async def begin(self, updates: Sequence[RefUpdate]) -> None:
        """Decide about the updates before their trees are read. Raises PushRefused.

        No lock is held, so that the repository can be committed to.
        """

    @abstractmethod
    async def check(self, tree: PushedTree) -> None:
        """Decide about the pushed tree. Raises PushRefused."""

    @abstractmethod
    async def apply(self, update: RefUpdate, output: PushOutput) -> None:
        """Carry the push out; `main` moves once this returns.

        Raises PushRefused, with nothing changed, or PushInterrupted.
        The push is recorded: if the server ends meanwhile, `find_unfinished_push` returns it. `main` is locked.
        """

    @abstractmethod
    async def finish(self, output: PushOutput) -> None:
        """Follow up after `main` has moved. No lock is held."""


class GarbageCollector(ABC):
    """Removes from repositories what nothing needs. Every method raises GitUnavailable and GitFailed."""

    @abstractmethod
    async def measure_usage(self, agent_id: str) -> RepositoryUsage | None:
        """Return what a repository takes, None if there is none."""

    @abstractmethod
    async def collect_garbage(self, agent_id: str, kept: Sequence[str], unreachable_before: datetime) -> bool:
        """Repack a repository, without objects that neither `main` nor a commit of `kept` needs any more.

        Such objects stay as long as their pack is not older than `unreachable_before`. Nothing is done, and False
        returned, while a push writes to the repository; a push that begins later waits. An interruption at any point
        removes at most such objects.
        """


class RepositoryCopier(ABC):
    """Brings repositories to another server. Every method raises GitUnavailable and GitFailed."""

    @abstractmethod
    def read(self, agent_id: str, changed_since: datetime | None = None) -> AsyncGenerator[bytes]:
        """Yield an archive of a repository for `write`; without a repository, nothing.

        With `changed_since`, it has only what changed since a former archive was begun, and nothing changes meanwhile.
        """

    @abstractmethod
    async def write(self, agent_id: str, archive: AsyncIterable[bytes]) -> None:
        """Make a repository what an archive says, durably; objects that it had stay."""


class GitRepositories(ABC):
    """Every method raises GitUnavailable and GitFailed. Commits, heads and pushes of an agent never overlap.

    A repository is created, empty, when it is first written to or served.
    """

    collector: GarbageCollector
    copier: RepositoryCopier
    is_shared: bool = False
    """Whether all servers of the deployment have the same repositories."""

    @abstractmethod
    async def check_available(self) -> str:
        """Run Git in a sandbox and return its version. Raises GitUnavailable with the reason in its message."""

    @abstractmethod
    async def delete(self, agent_id: str) -> None:
        """Remove a repository. Idempotent."""

    @abstractmethod
    async def head(self, agent_id: str) -> str | None:
        """Return the commit of `main`, None without a commit or a repository."""

    @abstractmethod
    async def set_head(self, agent_id: str, commit: str) -> None:
        """Move `main` to a commit. Raises UnknownCommit and PushUnfinished."""

    @abstractmethod
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
        """Commit changes to the tree of `base` (None: to an empty one), move `main` there and return the commit.

        If the tree is that of `parent`, no commit is made: `main` moves to `parent`, which is returned.
        A path with a part that Git reserves (`is_git_name`) is left out. The author is a name, or a name with an
        address in angle brackets. A failure, or an exception of `changes`, leaves `main` as it was. Raises
        UnknownCommit for `parent` and `base`, and PushUnfinished.
        """

    @abstractmethod
    def list_changes(self, agent_id: str, old: str | None, new: str) -> AsyncGenerator[GitEntry]:
        """Yield the entries of `new` that differ from `old` (None: all), and those that are missing, as deleted.

        Raises UnknownCommit.
        """

    @abstractmethod
    def read_blobs(self, agent_id: str, blobs: Sequence[str]) -> AsyncGenerator[GitBlob]:
        """Yield blobs in the order of the request; what is left of one is skipped when the next is taken."""

    @abstractmethod
    def serve(self, agent_id: str, request: GitRequest) -> AsyncGenerator[bytes]:
        """Yield the response to an advertisement of either service, or to git-upload-pack.

        Closing the generator ends the command. Raises BadGitRequest before the first byte.
        """

    @abstractmethod
    def receive(self, agent_id: str, request: GitRequest, handler: PushHandler) -> AsyncGenerator[bytes]:
        """Yield the response to git-receive-pack, and let the handler decide. Closing the generator ends the command.

        Raises BadGitRequest and GitDiskFull before the first byte.
        A push whose client left before `apply` has begun changes nothing; from then on it is carried out. Before an
        unfinished push is finished, others are refused.
        """

    @abstractmethod
    async def find_unfinished_push(self, agent_id: str) -> tuple[str | None, str] | None:
        """Return old and new commit of a push that was recorded and neither finished nor undone."""

    @abstractmethod
    async def finish_push(self, agent_id: str, *, undo: bool = False) -> None:
        """Move `main` to the commit of the unfinished push, if there is one, and forget the push.

        With `undo`, `main` stays as it was before.
        """


def is_git_name(part: str) -> bool:
    """Return whether one part of a path means `.git` to a file system."""
    return _matches(_GIT, part, ".git")


def is_git_path(path: str, *, is_link: bool) -> bool:
    """Return whether Git refuses a path: one with a `.git` part, or that of a link with a `.gitmodules` part."""
    parts = path.split("/")
    return any(map(is_git_name, parts)) or (is_link and any(_matches(_MODULES, part, ".gitmodules") for part in parts))


def _matches(ntfs: re.Pattern[str], part: str, name: str) -> bool:
    # A backslash separates folders on NTFS.
    return any(map(ntfs.fullmatch, part.split("\\"))) or _IGNORED_BY_HFS.sub("", part).lower() == name
