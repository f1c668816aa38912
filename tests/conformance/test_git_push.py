"""The contract of pushes to Git repositories: what a handler decides, and what a crash leaves."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from roost.drivers.git.contract import GitRepositories, GitRequest, GitService, PushUnfinished, RefUpdate
from tests.conformance.git_objects import body_of, commit_tree, git, make_blob, make_pack, push_of, push_request
from tests.conformance.git_pushes import MAIN, ROOT, Handler, bare, push, refuse, tree_of, work
from tests.conformance.sandboxes import MakeSandbox
from tests.conformance.test_git import AGENT, commit, file, kind, make_sandbox, open_repositories, repositories

pytestmark = pytest.mark.container
__all__ = ["bare", "kind", "make_sandbox", "repositories", "work"]


async def test_an_accepted_push_is_checked_applied_and_moves_main(
    repositories: GitRepositories, work: Path, bare: Path
) -> None:
    new = commit_tree(work, tree_of(work, a=b"text"))
    handler = Handler(said="line one\nline two ü")
    report = await push(repositories, push_of(work, new), handler)
    assert handler.calls == ["begin", "check", "apply", "finish"]
    assert handler.updates == [RefUpdate(MAIN, None, new, is_commit=True, is_fast_forward=True)]
    assert handler.contents == {"a": b"text"}
    assert f"ok {MAIN}" in report
    assert "applied\nline one\nline two ü\n" in report
    assert "finished\n" in report
    assert await repositories.head(AGENT) == new
    assert await repositories.find_unfinished_push(AGENT) is None
    assert git(bare, "fsck", "--strict", "--full") == ""
    second = commit_tree(work, tree_of(work, a=b"more"), new)
    assert f"ok {MAIN}" in await push(repositories, push_of(work, second, new))
    assert await repositories.head(AGENT) == second


async def test_a_handler_refuses_with_a_message_at_each_stage(repositories: GitRepositories, work: Path) -> None:
    new = commit_tree(work, tree_of(work, a=b"text"))
    for stage in ("begin", "check", "apply"):
        refusal: dict[str, Any] = {f"on_{stage}": refuse(f"no at {stage}\nbecause")}
        handler = Handler(**refusal)
        report = await push(repositories, push_of(work, new), handler)
        assert handler.calls[-1] == stage
        assert f"no at {stage}\nbecause\n" in report
        assert f"ng {MAIN}" in report
        assert await repositories.head(AGENT) is None
        assert await repositories.find_unfinished_push(AGENT) is None


async def test_updates_are_described(repositories: GitRepositories, work: Path) -> None:
    first = commit_tree(work, tree_of(work, a=b"1"))
    await push(repositories, push_of(work, first))
    beside = commit_tree(work, tree_of(work, a=b"2"))
    blob = make_blob(work, b"no commit")
    cases = [
        (push_of(work, beside, first), [RefUpdate(MAIN, first, beside, is_commit=True, is_fast_forward=False)]),
        (push_of(work, beside, ref="refs/tags/v1"), [RefUpdate("refs/tags/v1", None, beside, True, True)]),
        (push_request(b"", (first, None, MAIN)), [RefUpdate(MAIN, first, None, False, False)]),
        (push_request(make_pack(work, blob), (first, blob, MAIN)), [RefUpdate(MAIN, first, blob, False, False)]),
    ]
    for body, updates in cases:
        handler = Handler(on_begin=refuse("no"))
        assert "ng refs/" in await push(repositories, body, handler)
        assert handler.updates == updates
    many = [(None, beside, f"refs/heads/b{number}") for number in range(300)]
    handler = Handler()
    report = await push(repositories, push_request(make_pack(work, beside), *many), handler)
    assert (len(handler.updates), handler.calls) == (2, ["begin"])
    assert "ng refs/heads/b299" in report
    assert await repositories.head(AGENT) == first


async def test_a_concurrent_change_is_noticed_before_it_is_overwritten(
    repositories: GitRepositories, work: Path
) -> None:
    base = commit_tree(work, tree_of(work, a=b"0"))
    await push(repositories, push_of(work, base))
    gate = asyncio.Event()
    first, second = (commit_tree(work, tree_of(work, a=text), base) for text in (b"1", b"2"))
    slow = Handler(gate=gate)
    one = asyncio.create_task(push(repositories, push_of(work, first, base), slow))
    await slow.applying.wait()
    fast = Handler()
    two = asyncio.create_task(push(repositories, push_of(work, second, base), fast))
    while "check" not in fast.calls:
        await asyncio.sleep(0)
    gate.set()
    assert f"ok {MAIN}" in await one
    report = await two
    assert "Another push or change was faster" in report
    assert f"ng {MAIN}" in report
    assert "apply" not in fast.calls
    assert await repositories.head(AGENT) == first


async def test_a_push_whose_client_leaves_is_carried_out_once_it_is_applied(
    repositories: GitRepositories, work: Path
) -> None:
    new = commit_tree(work, tree_of(work, a=b"text"))
    handler = Handler(gate=asyncio.Event())
    request = GitRequest(GitService.RECEIVE_PACK, body=body_of(push_of(work, new)))

    async def consume() -> None:
        async with aclosing(repositories.receive(AGENT, request, handler)) as response:
            async for _ in response:
                pass

    client = asyncio.create_task(consume())
    await handler.applying.wait()
    client.cancel()
    assert handler.gate is not None
    handler.gate.set()
    with pytest.raises(asyncio.CancelledError):
        await client
    assert await repositories.head(AGENT) == new
    assert await repositories.find_unfinished_push(AGENT) is None


async def test_a_push_that_leaves_earlier_changes_nothing(repositories: GitRepositories, work: Path) -> None:
    new = commit_tree(work, tree_of(work, a=os.urandom(100_000)))
    body, handler = push_of(work, new), Handler()

    async def leaving() -> AsyncIterator[bytes]:
        yield body[:50_000]
        raise ConnectionResetError("the client left")

    with pytest.raises(ConnectionResetError):
        await push(repositories, leaving(), handler)
    assert handler.calls == []
    assert await repositories.head(AGENT) is None
    assert f"ok {MAIN}" in await push(repositories, body)


@pytest.mark.parametrize("undone", [False, True])
async def test_an_interrupted_push_is_found_and_finished_or_undone(
    repositories: GitRepositories, work: Path, tmp_path: Path, undone: bool, make_sandbox: MakeSandbox
) -> None:
    base = commit_tree(work, tree_of(work, a=b"0"))
    await push(repositories, push_of(work, base))
    new = commit_tree(work, tree_of(work, a=b"1"), base)

    def crash() -> None:
        raise RuntimeError("as if the server had ended")

    with pytest.raises(RuntimeError):
        await push(repositories, push_of(work, new, base), Handler(on_apply=crash))
    again = open_repositories(tmp_path, make_sandbox)
    assert await again.head(AGENT) == base
    assert await again.find_unfinished_push(AGENT) == (base, new)
    with pytest.raises(PushUnfinished):
        await commit(again, base, file("b"))
    with pytest.raises(PushUnfinished):
        await again.set_head(AGENT, base)
    other = commit_tree(work, tree_of(work, a=b"2"), base)
    assert "Another push or change was faster" in await push(again, push_of(work, other, base))
    assert await again.find_unfinished_push(AGENT) == (base, new)
    await again.finish_push(AGENT, undo=undone)
    assert await again.head(AGENT) == (base if undone else new)
    assert await again.find_unfinished_push(AGENT) is None
    await again.finish_push(AGENT, undo=undone)
    assert await again.head(AGENT) == (base if undone else new)
    last = commit_tree(work, tree_of(work, a=b"3"), base if undone else new)
    assert f"ok {MAIN}" in await push(again, push_of(work, last, base if undone else new))


_SERVER = """
import asyncio, os, signal, sys
from pathlib import Path
from tests.conformance import sandboxes
from tests.conformance.test_git import kind, make_sandbox, open_repositories
from tests.conformance.git_pushes import Handler, push, bare, work
def crash(*_):
    os.kill(os.getpid(), signal.SIGKILL)
body = Path(sys.argv[3]).read_bytes()
opened = open_repositories(Path(sys.argv[1]), getattr(sandboxes, sys.argv[4]))
asyncio.run(push(opened, body, Handler(**{sys.argv[2]: crash})))
"""


@pytest.mark.parametrize("stage", ["on_begin", "on_check", "on_apply"])
async def test_a_push_in_a_killed_server_is_recorded_or_never_was(
    repositories: GitRepositories, work: Path, tmp_path: Path, stage: str, make_sandbox: MakeSandbox
) -> None:
    base = commit_tree(work, tree_of(work, a=b"0"))
    await push(repositories, push_of(work, base))
    new = commit_tree(work, tree_of(work, a=b"1"), base)
    (tmp_path / "body").write_bytes(push_of(work, new, base))
    command = [sys.executable, "-c", _SERVER, str(tmp_path), stage, str(tmp_path / "body"), make_sandbox.__name__]
    killed = await asyncio.to_thread(subprocess.run, command, check=False, timeout=60, cwd=ROOT)
    assert killed.returncode == -signal.SIGKILL
    again = open_repositories(tmp_path, make_sandbox)
    assert await again.head(AGENT) == base
    assert await again.find_unfinished_push(AGENT) == ((base, new) if stage == "on_apply" else None)
    await again.finish_push(AGENT)
    assert await again.head(AGENT) == (new if stage == "on_apply" else base)
    last = commit_tree(work, tree_of(work, a=b"2"), new)
    if stage == "on_apply":
        assert f"ok {MAIN}" in await push(again, push_of(work, last, new))
    else:
        assert f"ok {MAIN}" in await push(again, push_of(work, last, base))
