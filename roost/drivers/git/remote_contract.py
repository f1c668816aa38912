"""Contract of remote repositories, which tenants name by URL (decision 0028).

The URL, the server behind it and every object are hostile. Nothing is checked out or run, no credential is sent, and no
host is reached that the operator's rules for outgoing connections refuse.
"""

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field

from roost.core.problem import InvalidInput, Problem, ProblemKind, ServiceUnavailable
from roost.drivers.git.contract import GitBlob, GitEntry

MAX_REMOTE_BYTES = 64 * 1024**2
"""Maximum size of the pack of one commit, and of its files together."""
MAX_REMOTE_ENTRIES = 5_000
MAX_REMOTE_REFS = 5_000
REMOTE_URL_LIMIT = 2048


class RemoteRefused(InvalidInput):
    """The URL is not allowed, or leads to nothing that can be fetched; the message says why."""

    message = "The Git repository cannot be used"


class RemoteRefNotFound(RemoteRefused):
    message = "The Git repository has no such branch, tag or commit"


class RemoteUnavailable(ServiceUnavailable):
    message = "The Git repository cannot be reached"


class RemoteTimeout(Problem):
    kind = ProblemKind.TIMED_OUT
    message = "The server of the Git repository did not answer in time"


@dataclass(frozen=True)
class RemoteRefs:
    """Commits by the names of branches and tags, and the name of the default branch if the server tells it."""

    default_branch: str | None = None
    branches: Mapping[str, str] = field(default_factory=dict[str, str])
    tags: Mapping[str, str] = field(default_factory=dict[str, str])


class FetchedCommit(ABC):
    """The tree of a commit that was fetched; usable until its context ends.

    entries: all files, links and submodules, with sizes of files.
    """

    def __init__(self, commit: str, entries: Sequence[GitEntry]) -> None:
        self.commit = commit
        self.entries = entries

    @abstractmethod
    def read_blobs(self, entries: Sequence[GitEntry]) -> AsyncGenerator[GitBlob]:
        """Yield the content of files or links, in order; what is left of one is skipped when the next is taken.

        Raises RemoteRefused, RemoteTimeout, GitUnavailable.
        """


class RemoteRepositories(ABC):
    """Every method raises RemoteRefused, RemoteUnavailable, RemoteTimeout, GitUnavailable and GitFailed.

    `subject` is the tenant to whom connections are charged.
    """

    @abstractmethod
    async def list_refs(self, subject: str, url: str) -> RemoteRefs:
        """List the branches and tags, up to MAX_REMOTE_REFS."""

    @abstractmethod
    def fetch(self, subject: str, url: str, ref: str | None) -> AbstractAsyncContextManager[FetchedCommit]:
        """Fetch one commit without its history: of a branch, a tag, a commit id, or without `ref` the default branch.

        Raises RemoteRefNotFound too. What was fetched is removed when the context ends.
        """
