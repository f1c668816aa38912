"""Pushes to a repository, and a handler that remembers what it is asked."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from roost.drivers.git.contract import (
    EntryKind,
    GitEntry,
    GitRepositories,
    GitRequest,
    GitService,
    PushedTree,
    PushHandler,
    PushOutput,
    PushRefused,
    RefUpdate,
)
from tests.conformance.git_objects import body_of, git, make_blob, make_tree, read_report
from tests.conformance.test_git import AGENT

MAIN = "refs/heads/main"
ROOT = Path(__file__).parents[2]


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A repository of a client."""
    folder = tmp_path / "work"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    return folder


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    return tmp_path / "data/git" / AGENT


@dataclass
class Handler(PushHandler):
    """Accepts what its functions do not refuse, and remembers what it was asked."""

    on_begin: Callable[[Sequence[RefUpdate]], None] = lambda _updates: None
    on_check: Callable[[Sequence[GitEntry]], None] = lambda _entries: None
    on_apply: Callable[[], None] = lambda: None
    said: str = ""
    calls: list[str] = field(default_factory=list[str])
    updates: Sequence[RefUpdate] = ()
    contents: dict[str, bytes] = field(default_factory=dict[str, bytes])
    gate: asyncio.Event | None = None
    applying: asyncio.Event = field(default_factory=asyncio.Event)

    async def begin(self, updates: Sequence[RefUpdate]) -> None:
        self.calls.append("begin")
        self.updates = updates
        self.on_begin(updates)

    async def check(self, tree: PushedTree) -> None:
        self.calls.append("check")
        entries = [entry async for entry in tree.list_changes()]
        blobs = [entry.blob for entry in entries if entry.kind is not EntryKind.DELETED]
        contents = [b"".join([chunk async for chunk in blob.content]) async for blob in tree.read_blobs(blobs)]
        paths = [entry.path for entry in entries if entry.kind is not EntryKind.DELETED]
        self.contents = dict(zip(paths, contents, strict=True))
        self.on_check(entries)

    async def apply(self, update: RefUpdate, output: PushOutput) -> None:
        self.calls.append("apply")
        self.applying.set()
        if self.gate is not None:
            await self.gate.wait()
        self.on_apply()
        await output.say(f"applied\n{self.said}")

    async def finish(self, output: PushOutput) -> None:
        self.calls.append("finish")
        await output.say("finished")


def tree_of(work: Path, **files: bytes) -> str:
    return make_tree(work, sorted(("100644", name.encode(), make_blob(work, data)) for name, data in files.items()))


def refuse(message: str) -> Callable[..., None]:
    def decide(*_: object) -> None:
        raise PushRefused(message)

    return decide


async def push(target: GitRepositories, body: bytes | AsyncIterator[bytes], handler: PushHandler | None = None) -> str:
    parts = body_of(body) if isinstance(body, bytes) else body
    request = GitRequest(GitService.RECEIVE_PACK, body=parts)
    response = [chunk async for chunk in target.receive(AGENT, request, handler or Handler())]
    return read_report(b"".join(response))
