"""The contract of collecting garbage in Git repositories: what is needed survives, at any interruption."""

import asyncio
import os
import subprocess
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from roost.drivers.git import scripts
from roost.drivers.git.contract import GitFailed, GitRepositories
from tests.conformance.git_objects import commit_tree, git, push_of
from tests.conformance.git_pushes import MAIN, Handler, push, tree_of
from tests.conformance.sandboxes import MakeSandbox
from tests.conformance.test_git import (
    AGENT,
    bare,
    commit,
    file,
    kind,
    make_sandbox,
    open_repositories,
    paths,
    repositories,
)
from tests.conformance.test_git_push import work

pytestmark = pytest.mark.container
__all__ = ["bare", "kind", "make_sandbox", "repositories", "work"]
AGO, AHEAD = (datetime.now(UTC) + timedelta(days=days) for days in (-7, 1))


def exists(bare: Path, *commits: str) -> Sequence[bool]:
    """Return which of the commits the repository has, with all that belongs to them."""
    command = ["git", "-c", "safe.directory=*", "rev-list", "--objects", "--quiet"]
    return [
        not subprocess.run([*command, one], cwd=bare, stderr=subprocess.DEVNULL, check=False).returncode
        for one in commits
    ]


async def make_history(repositories: GitRepositories) -> tuple[str, str, str, str]:
    """Make four commits: an ancestor of `main`, one beside it, another beside it, and `main`."""
    first = await commit(repositories, None, file("first", os.urandom(50_000)))
    named = await commit(repositories, first, file("named", os.urandom(50_000)))
    lost = await commit(repositories, first, file("lost", os.urandom(50_000)))
    return first, named, lost, await commit(repositories, first, file("main", os.urandom(50_000)))


async def test_needed_objects_survive_and_the_rest_is_removed(repositories: GitRepositories, bare: Path) -> None:
    assert await repositories.collector.measure_usage(AGENT) is None
    first, named, lost, main = await make_history(repositories)
    created = await repositories.collector.measure_usage(AGENT)
    assert created is not None
    assert created.collected_at <= created.changed_at
    kept = [named, "1" * 40]  # and one that is missing
    assert await repositories.collector.collect_garbage(AGENT, kept, AGO)
    assert exists(bare, first, named, lost, main) == [True, True, True, True]  # young objects stay
    for _ in range(2):
        assert await repositories.collector.collect_garbage(AGENT, kept, AHEAD)
        assert exists(bare, first, named, lost, main) == [True, True, False, True]
    collected = await repositories.collector.measure_usage(AGENT)
    assert collected is not None
    assert collected.size < created.size - 50_000
    assert collected.changed_at <= collected.collected_at
    assert git(bare, "for-each-ref", "--format=%(refname)") == MAIN
    assert git(bare, "fsck", "--strict", "--no-dangling") == ""
    await repositories.set_head(AGENT, named)
    assert await paths(repositories, await commit(repositories, named, file("more"))) == ["first", "more", "named"]


async def test_a_push_and_a_collection_exclude_each_other(
    repositories: GitRepositories, bare: Path, work: Path
) -> None:
    base = commit_tree(work, tree_of(work, a=b"0"))
    slow = Handler(gate=asyncio.Event())
    assert slow.gate is not None
    pushing = asyncio.create_task(push(repositories, push_of(work, base), slow))
    await slow.applying.wait()
    assert not await repositories.collector.collect_garbage(AGENT, [], AHEAD)
    slow.gate.set()
    assert f"ok {MAIN}" in await pushing
    new = commit_tree(work, tree_of(work, a=b"1"), base)
    collected, pushed = await asyncio.gather(
        repositories.collector.collect_garbage(AGENT, [], AHEAD), push(repositories, push_of(work, new, base))
    )
    assert collected
    assert f"ok {MAIN}" in pushed
    assert git(bare, "fsck", "--strict", "--no-dangling") == ""


@pytest.mark.parametrize(
    "change",
    [
        ("git repack", "exit 9; git repack"),
        ("git repack", "ulimit -f 16; git repack"),  # its first pack becomes larger
        ("-q -d", "-q"),  # the new packs are complete, the old ones not removed
        ("status=$?", "exit 9"),
    ],
)
async def test_an_interrupted_collection_loses_nothing_that_is_needed(
    repositories: GitRepositories,
    bare: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    make_sandbox: MakeSandbox,
    change: tuple[str, str],
) -> None:
    first, named, lost, main = await make_history(repositories)
    monkeypatch.setattr(scripts, "COLLECT", scripts.COLLECT.replace(*change).replace("status=$?", "exit 9"))
    with pytest.raises(GitFailed):
        await repositories.collector.collect_garbage(AGENT, [named], AHEAD)
    monkeypatch.undo()
    again = open_repositories(tmp_path, make_sandbox)
    assert await again.head(AGENT) == main
    assert exists(bare, first, named, main) == [True, True, True]
    assert await again.collector.collect_garbage(AGENT, [named], AHEAD)
    assert exists(bare, first, named, lost, main) == [True, True, False, True]
    assert not [name for name in os.listdir(bare / "objects/pack") if "tmp" in name]  # noqa: PTH208 - names only
    assert git(bare, "for-each-ref", "--format=%(refname)") == MAIN
    assert git(bare, "fsck", "--strict", "--no-dangling") == ""
