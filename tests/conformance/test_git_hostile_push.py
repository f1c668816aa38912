"""Hostile pushes to Git repositories: references, trees, packs and sizes (cases F14, F15, F16)."""

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from roost.core.machine.disk_space import DiskSpace
from roost.drivers.git import runner
from roost.drivers.git.contract import (
    MAX_REPOSITORY_BYTES,
    EntryKind,
    GitDiskFull,
    GitFailed,
    GitRepositories,
    PushedTree,
)
from tests.conformance.git_objects import (
    commit_tree,
    delta_bomb,
    git,
    make_blob,
    make_pack,
    make_tree,
    push_of,
    push_request,
)
from tests.conformance.git_pushes import MAIN, Handler, bare, push, refuse, tree_of, work
from tests.conformance.test_git import AGENT, kind, make_sandbox, repositories

pytestmark = pytest.mark.container
__all__ = ["bare", "kind", "make_sandbox", "repositories", "work"]


@pytest.mark.parametrize(
    "ref", ["refs/heads/../x", "refs/heads/-x", "refs/heads/a@{b", "main", "refs/roost/push", "refs/heads/main\nx y"]
)
async def test_odd_references_do_not_come_to_be(
    repositories: GitRepositories, work: Path, bare: Path, ref: str
) -> None:
    new = commit_tree(work, tree_of(work, a=b"text"))
    handler = Handler(on_begin=lambda updates: None if updates[0].ref == MAIN else refuse("only main")())
    try:
        await push(repositories, push_of(work, new, ref=ref), handler)
    except GitFailed:
        assert ref == MAIN + "\nx y", "only a forged list of updates is no request of Git"
    assert git(bare, "for-each-ref") == ""
    assert "apply" not in handler.calls


DISGUISES = [b".git", b".GIT", ".g\u200cit".encode(), b"git~1", b".git ", b"..", b"."]


@pytest.mark.parametrize("name", DISGUISES)
async def test_trees_that_hide_a_repository_are_refused(
    repositories: GitRepositories, work: Path, bare: Path, name: bytes
) -> None:
    inner = tree_of(work, config=b"[core]\n\tfsmonitor = touch executed\n")
    new = commit_tree(work, make_tree(work, [("40000", name, inner)]))
    handler = Handler()
    report = await push(repositories, push_of(work, new), handler)
    assert f"ng {MAIN}" in report
    assert handler.calls == []
    assert git(bare, "for-each-ref") == ""


async def test_malformed_objects_are_refused(repositories: GitRepositories, work: Path) -> None:
    tree = tree_of(work, a=b"text")
    broken = f"tree {tree}\nauthor x\ncommitter x <x> 1 +0000\n\nno date\n".encode()
    bad_commit = git(work, "hash-object", "-t", "commit", "-w", "--literally", "--stdin", data=broken)
    link = make_blob(work, b"/etc/passwd")
    modules = commit_tree(work, make_tree(work, [("120000", b".gitmodules", link)]))
    for new in (bad_commit, modules):
        assert f"ng {MAIN}" in await push(repositories, push_of(work, new))
    assert await repositories.head(AGENT) is None


async def test_incomplete_and_false_packs_are_refused(repositories: GitRepositories, work: Path, bare: Path) -> None:
    new = commit_tree(work, tree_of(work, a=os.urandom(100_000)))
    pack = make_pack(work, new)
    flipped = bytearray(pack)
    flipped[len(pack) // 2] ^= 1
    without_trees = make_pack(work, new, f"{new}^{{tree}}")
    absent = commit_tree(work, tree_of(work, b=b"never sent"))
    requests = [
        push_request(pack[: len(pack) // 2], (None, new, MAIN)),
        push_request(bytes(flipped), (None, new, MAIN)),
        push_request(b"PACK\0\0\0\2\xff\xff\xff\xff" + pack[12:], (None, new, MAIN)),
        push_request(b"not a pack", (None, new, MAIN)),
        push_request(pack, (None, absent, MAIN)),
        push_request(without_trees, (None, new, MAIN)),
    ]
    for body in requests:
        handler = Handler()
        report = await push(repositories, body, handler)
        assert f"ng {MAIN}" in report
        assert "apply" not in handler.calls
    assert git(bare, "for-each-ref") == ""
    await push(repositories, push_of(work, new))
    assert not list(bare.glob("objects/tmp_objdir-*")), "no quarantine stays"


async def test_a_delta_bomb_ends_in_its_sandbox(repositories: GitRepositories, work: Path) -> None:
    new = commit_tree(work, tree_of(work, a=b"text"))
    bomb = delta_bomb(4 * 1024**3)
    assert len(bomb) < 2 * 1024**2
    async with asyncio.timeout(30):
        assert f"ng {MAIN}" in await push(repositories, push_request(bomb, (None, new, MAIN)))


async def test_an_endless_pack_is_cut_off(repositories: GitRepositories, monkeypatch: pytest.MonkeyPatch) -> None:
    sent = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal sent
        yield push_request(b"PACK\0\0\0\2\0\0\0\1", (None, "1" * 40, MAIN)) + b"\xbf" + b"\xff" * 8
        while True:
            sent += 1024**2
            yield os.urandom(1024**2)

    async with asyncio.timeout(60):
        report = await push(repositories, endless())
    assert "unpack" in report
    assert sent < 1100 * 1024**2


async def test_a_repository_and_the_disk_have_a_limit(
    repositories: GitRepositories, work: Path, bare: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = commit_tree(work, tree_of(work, a=b"0"))
    await push(repositories, push_of(work, base))
    sparse = bare / "objects/pack/large"
    with sparse.open("wb") as file:
        file.truncate(MAX_REPOSITORY_BYTES)
    new = commit_tree(work, tree_of(work, a=b"1"), base)
    report = await push(repositories, push_of(work, new, base))
    assert "The repository has reached its limit of 8 GiB." in report
    assert f"ng {MAIN}" in report
    sparse.unlink()
    monkeypatch.setattr(runner, "read_disk_space", lambda _folder: DiskSpace(free=10**6, total=10**12))
    with pytest.raises(GitDiskFull):
        await push(repositories, push_of(work, new, base))
    monkeypatch.undo()
    assert f"ok {MAIN}" in await push(repositories, push_of(work, new, base))


async def test_submodules_are_described_and_hooks_of_a_tree_do_nothing(
    repositories: GitRepositories, work: Path, bare: Path
) -> None:
    hook = make_blob(work, b"#!/bin/sh\ntouch executed\n")
    hooks = make_tree(work, [("100755", b"pre-receive", hook)])
    tree = make_tree(work, [("40000", b"hooks", hooks), ("160000", b"module", "1" * 40)])
    new = commit_tree(work, tree)
    found: list[EntryKind] = []
    handler = Handler()

    async def check(tree: PushedTree) -> None:
        found.extend([entry.kind async for entry in tree.list_changes()])

    handler.check = check  # type: ignore[method-assign] - reads no submodule
    assert f"ok {MAIN}" in await push(repositories, push_of(work, new), handler)
    assert found == [EntryKind.EXECUTABLE, EntryKind.SUBMODULE]
    assert not (bare / "executed").exists()
