"""Repositories of a deployment: another server goes on with all that was acknowledged, whatever was interrupted."""

import shutil
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from roost.agents.registry.repository import set_agent_host
from roost.agents.workspace.git.manifests import RepositoryManifests
from roost.agents.workspace.git.recovery import PushRecovery
from roost.core.db import Database
from roost.drivers.git.contract import (
    GitFailed,
    GitRepositories,
    GitRequest,
    GitService,
    GitUnavailable,
    PushedTree,
    PushUnfinished,
    UnknownCommit,
)
from roost.drivers.git.manifest_contract import RepositoryManifest
from roost.drivers.git.repositories import SandboxedRepositories
from roost.drivers.runtime.bwrap.sandbox import BwrapSandbox
from roost.storage.content.service import ContentService
from roost.warden_client.changes import PutFile
from tests.conformance.git_objects import body_of, commit_tree, git, packet, push_of
from tests.conformance.git_pushes import MAIN, Handler, push, tree_of, work
from tests.conformance.test_git import AGENT, commit, file, paths
from tests.drivers.git.failing_server import FailingServer, end_server
from tests.support.git_deployment import GitDeployment

pytestmark = pytest.mark.container
__all__ = ["work"]
AHEAD = datetime.now(UTC) + timedelta(days=1)
NO_TIME = timedelta(0)


@pytest.fixture
def deployment(database: Database, tmp_path: Path) -> GitDeployment:
    return GitDeployment.create(tmp_path, database, AGENT)


@pytest.fixture
def first(deployment: GitDeployment) -> SandboxedRepositories:
    return deployment.open_server("first")


async def give_agent(deployment: GitDeployment, host: str) -> None:
    await deployment.db.write(lambda connection: set_agent_host(connection, AGENT, host, None))


async def list_keys(deployment: GitDeployment) -> set[str]:
    return {blob.key async for blob in deployment.blobs.list()}


async def load(deployment: GitDeployment) -> RepositoryManifest:
    manifest = await RepositoryManifests(deployment.db, "any").load(AGENT)
    assert manifest is not None
    return manifest


def check_folder(deployment: GitDeployment, host: str) -> None:
    assert git(deployment.folder / host / "git" / AGENT, "fsck", "--strict", "--full", "--no-dangling") == ""


async def test_another_server_serves_and_goes_on(
    deployment: GitDeployment, first: SandboxedRepositories, work: Path
) -> None:
    base = commit_tree(work, tree_of(work, a=b"text"))
    assert f"ok {MAIN}" in await push(first, push_of(work, base))
    await commit(first, base, file("beside"))
    await first.set_head(AGENT, base)
    pushed = commit_tree(work, tree_of(work, a=b"text", b=b"pushed"), base)
    assert f"ok {MAIN}" in await push(first, push_of(work, pushed, base))
    shutil.rmtree(deployment.folder / "first")
    await give_agent(deployment, "second")
    second = deployment.open_server("second")
    assert await second.head(AGENT) == pushed
    want = packet(f"want {pushed}\n".encode()) + b"0000" + packet(b"done\n")
    request = GitRequest(GitService.UPLOAD_PACK, body=body_of(want))
    assert b"PACK" in b"".join([chunk async for chunk in second.serve(AGENT, request)])
    assert await paths(second, pushed) == ["a", "b"]
    last = commit_tree(work, tree_of(work, c=b"last"), pushed)
    assert f"ok {MAIN}" in await push(second, push_of(work, last, pushed))
    check_folder(deployment, "second")
    await give_agent(deployment, "third")
    third = deployment.open_server("third")
    assert await paths(third, await commit(third, last, file("d"))) == ["c", "d"]
    assert int(git(deployment.folder / "third/git" / AGENT, "rev-list", "--count", "main")) == 4


async def test_a_server_that_lost_the_agent_is_refused_and_reads_again(
    deployment: GitDeployment, first: SandboxedRepositories, work: Path
) -> None:
    base = commit_tree(work, tree_of(work, a=b"text"))
    await push(first, push_of(work, base))
    await give_agent(deployment, "second")
    with pytest.raises(GitUnavailable, match="Another server"):
        await commit(first, base, file("refused"))
    assert await first.head(AGENT) == base
    late = commit_tree(work, tree_of(work, late=b""), base)
    handler = Handler()
    assert "The push cannot be stored: Another server" in await push(first, push_of(work, late, base), handler)
    assert "apply" not in handler.calls
    second = deployment.open_server("second")
    assert await second.find_unfinished_push(AGENT) is None
    made = await commit(second, base, file("b"))
    assert await first.head(AGENT) == made
    assert await paths(first, made) == ["a", "b"]
    await give_agent(deployment, "first")
    last = await commit(first, made, file("c"))
    assert await paths(second, last) == ["a", "b", "c"]
    check_folder(deployment, "first")
    check_folder(deployment, "second")


async def test_of_two_changes_at_once_one_is_refused(deployment: GitDeployment, first: SandboxedRepositories) -> None:
    other = deployment.open_server("first", deployment.folder / "other")
    base = await commit(first, None, file("a"))
    assert await other.head(AGENT) == base
    made = list[str]()

    async def slow() -> AsyncIterator[bytes]:
        made.append(await commit(other, base, file("b")))
        yield b"text"

    with pytest.raises(GitUnavailable, match="Another server"):
        await commit(first, base, replace(file("slow"), content=slow()))
    assert [await one.head(AGENT) for one in (first, other)] == made * 2
    assert await paths(first, await commit(first, made[0], file("c"))) == ["a", "b", "c"]


@dataclass(eq=False)
class SlowHandler(Handler):
    """Calls a function between the check and the application of a push."""

    meanwhile: Callable[[], Any] = lambda: None

    async def check(self, tree: PushedTree) -> None:
        await super().check(tree)
        await self.meanwhile()


async def test_a_push_is_refused_after_a_change_on_another_server(
    deployment: GitDeployment, first: SandboxedRepositories, work: Path
) -> None:
    base = commit_tree(work, tree_of(work, a=b"0"))
    await push(first, push_of(work, base))
    other = deployment.open_server("first", deployment.folder / "other")
    new = commit_tree(work, tree_of(work, a=b"1"), base)
    slow = SlowHandler(meanwhile=lambda: commit(other, base, file("b")))
    assert "Another push or change was faster" in await push(first, push_of(work, new, base), slow)
    assert await first.find_unfinished_push(AGENT) is None
    assert await paths(first, await first.head(AGENT) or "") == ["a", "b"]


@pytest.mark.parametrize("step", ["create", "commit", "before", "after", "reference"])
async def test_a_commit_that_fails_at_any_step_is_there_or_not(
    deployment: GitDeployment, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    server = FailingServer(deployment)
    repositories = server.open()
    base = await commit(repositories, None, file("a"))
    server.fail(step, monkeypatch)
    with pytest.raises((RuntimeError, GitUnavailable)):
        await commit(repositories, base, file("b"))
    server.fail("", monkeypatch)
    monkeypatch.undo()
    head = await repositories.head(AGENT)
    assert head is not None
    assert (head != base) == (step in {"after", "reference"})
    expected = ["a"] if head == base else ["a", "b"]
    last = ""
    for again in (repositories, server.open(), deployment.open_server("first", deployment.folder / "new")):
        assert await again.head(AGENT) == (last or head)
        references = [part async for part in again.serve(AGENT, GitRequest(GitService.UPLOAD_PACK))]
        assert f"{last or head} {MAIN}".encode() in b"".join(references)
        assert await paths(again, head) == expected
        last = await commit(again, last or head, file("c", last.encode()))
        assert await paths(again, last) == [*expected, "c"]
    check_folder(deployment, "new")


@pytest.mark.parametrize("step", ["before", "after"])
@pytest.mark.parametrize("stage", ["on_check", "on_apply"])
async def test_a_push_that_fails_at_any_step_is_recorded_or_never_was(
    deployment: GitDeployment, work: Path, monkeypatch: pytest.MonkeyPatch, stage: str, step: str
) -> None:
    """The record is stored after the check, and `main` after the application."""
    server = FailingServer(deployment)
    repositories = server.open()
    base = commit_tree(work, tree_of(work, a=b"0"))
    await push(repositories, push_of(work, base))
    new = commit_tree(work, tree_of(work, a=b"1"), base)
    failing: dict[str, Any] = {stage: lambda *_: server.fail(step, monkeypatch)}
    handler = Handler(**failing)
    with pytest.raises(RuntimeError):
        await push(repositories, push_of(work, new, base), handler)
    server.fail("", monkeypatch)
    assert ("apply" in handler.calls) == (stage == "on_apply")
    is_finished = (stage, step) == ("on_apply", "after")
    is_recorded = stage == "on_apply" or step == "after"
    for again in (repositories, server.open(), deployment.open_server("first", deployment.folder / "new")):
        assert await again.head(AGENT) == (new if is_finished else base)
        assert await again.find_unfinished_push(AGENT) == ((base, new) if is_recorded and not is_finished else None)
    await repositories.finish_push(AGENT)
    assert await again.head(AGENT) == (new if is_recorded else base)
    assert await paths(again, await again.head(AGENT) or "") == ["a"]


@pytest.mark.parametrize("is_undone", [False, True])
async def test_another_server_finishes_or_undoes_an_interrupted_push(
    deployment: GitDeployment, first: SandboxedRepositories, work: Path, is_undone: bool
) -> None:
    base = commit_tree(work, tree_of(work, a=b"0"))
    await push(first, push_of(work, base))
    new = commit_tree(work, tree_of(work, a=b"1"), base)
    with pytest.raises(RuntimeError):
        await push(first, push_of(work, new, base), Handler(on_apply=end_server))
    shutil.rmtree(deployment.folder / "first")
    await give_agent(deployment, "second")
    second, applied = deployment.open_server("second"), list[object]()
    assert await second.find_unfinished_push(AGENT) == (base, new)
    with pytest.raises(PushUnfinished):
        await commit(second, base, file("b"))
    if is_undone:
        await second.finish_push(AGENT, undo=True)
    else:
        await recover(deployment.db, second, applied)
        assert applied == [("a", b"1")]
    assert await second.find_unfinished_push(AGENT) is None
    assert await second.head(AGENT) == (base if is_undone else new)
    third = deployment.open_server("third")
    assert await third.find_unfinished_push(AGENT) is None
    assert await third.head(AGENT) == (base if is_undone else new)


async def recover(db: Database, repositories: GitRepositories, applied: list[object]) -> None:
    """Finish an interrupted push to a workspace that remembers what is written to it."""

    async def apply(changes: AsyncGenerator[Any], *, with_stamps: bool) -> None:
        assert not with_stamps
        async for change in changes:
            assert isinstance(change, PutFile)
            content = cast("AsyncIterator[bytes]", change.content)
            applied.append((change.path, b"".join([chunk async for chunk in content])))

    warden = SimpleNamespace(tree=SimpleNamespace(apply=apply))
    runtimes = cast("Any", SimpleNamespace(get_warden=lambda _: warden))
    async with PushRecovery(db, runtimes, repositories).exclude_pushes(AGENT):
        pass


async def test_a_missing_or_damaged_pack_is_a_clear_error(
    deployment: GitDeployment, first: SandboxedRepositories
) -> None:
    made = await commit(first, None, file("a"))
    (pack,) = (await load(deployment)).packs
    path = deployment.folder / "blobs" / pack.key[:2] / pack.key
    whole = path.read_bytes()
    for stored, message in (
        (whole[:100] + bytes([whole[100] ^ 1]) + whole[101:], "damaged in the bucket"),
        (whole[:-1], "lacks a pack"),
        (None, "lacks a pack"),
    ):
        path.unlink()
        if stored is not None:
            path.write_bytes(stored)
        second = deployment.open_server("first", deployment.folder / "second")
        with pytest.raises(GitFailed, match=message):
            await paths(second, made)
        assert await second.head(AGENT) == made
        assert not list((deployment.folder / "second/git" / AGENT / "objects/pack").iterdir())
        path.write_bytes(whole)
    assert await paths(second, made) == ["a"]
    (deployment.folder / "blobs").rename(deployment.folder / "away")
    third = deployment.open_server("first", deployment.folder / "third")
    with pytest.raises(GitUnavailable, match="cannot be reached"):
        await paths(third, made)
    (deployment.folder / "away").rename(deployment.folder / "blobs")
    assert await paths(third, made) == ["a"]


async def test_the_sweep_removes_exactly_what_no_manifest_names(
    deployment: GitDeployment, first: SandboxedRepositories
) -> None:
    content = ContentService(deployment.db, deployment.blobs)
    base = await commit(first, None, file("a"))
    lost = await commit(first, base, file("lost"))
    await first.set_head(AGENT, base)
    assert await content.sweep(NO_TIME) == 0
    old = await list_keys(deployment)
    assert await first.collector.collect_garbage(AGENT, [], AHEAD)
    named = {pack.key for pack in (await load(deployment)).packs}
    assert await content.sweep(NO_TIME) == len(old - named) > 0
    assert await list_keys(deployment) == named
    second = deployment.open_server("first", deployment.folder / "second")
    assert await paths(second, base) == ["a"]
    with pytest.raises(UnknownCommit):
        await paths(second, lost)
    usage = await first.collector.measure_usage(AGENT)
    assert usage is not None
    assert usage == await second.collector.measure_usage(AGENT)
    await first.delete(AGENT)
    assert await first.head(AGENT) is None
    assert await content.sweep(NO_TIME) == len(named)
    assert await list_keys(deployment) == set()


async def test_a_repository_without_a_manifest_is_stored_when_it_is_used(deployment: GitDeployment) -> None:
    data = deployment.folder / "first"
    made = await commit(SandboxedRepositories(data / "git", BwrapSandbox(data)), None, file("a"))
    first = deployment.open_server("first")
    assert await first.head(AGENT) == made
    assert await paths(first, made) == ["a"]
    assert await paths(deployment.open_server("second"), made) == ["a"]


async def test_requests_to_a_current_folder_read_little(deployment: GitDeployment) -> None:
    server = FailingServer(deployment)
    repositories = server.open()
    made = await commit(repositories, None, file("a"))
    want = packet(f"want {made}\n".encode()) + b"0000" + packet(b"done\n")
    requests: Sequence[Callable[[], AsyncGenerator[Any]]] = (
        lambda: repositories.serve(AGENT, GitRequest(GitService.UPLOAD_PACK)),
        lambda: repositories.serve(AGENT, GitRequest(GitService.UPLOAD_PACK, body=body_of(want))),
        lambda: repositories.list_changes(AGENT, None, made),
    )
    for request in requests:
        server.manifests.reads.clear()
        assert [part async for part in request()]
        assert server.manifests.reads == ["state"]


async def test_many_changes_stay_few_packs_on_every_server(
    deployment: GitDeployment, first: SandboxedRepositories
) -> None:
    made = None
    for number in range(53):
        made = await commit(first, made, file("a", str(number).encode()))
    assert len((await load(deployment)).packs) < 20
    second = deployment.open_server("first", deployment.folder / "second")
    made = await commit(second, made, file("b"))
    assert int(git(deployment.folder / "second/git" / AGENT, "rev-list", "--count", "main")) == 54
    assert await second.collector.collect_garbage(AGENT, [], AHEAD)
    assert await paths(first, made) == ["a", "b"]
    names = [{path.stem for path in folder.glob("*.pack")} for folder in _pack_folders(deployment, "first", "second")]
    assert names[0] == names[1], "packs that were merged on the other server are removed"


def _pack_folders(deployment: GitDeployment, *hosts: str) -> Sequence[Path]:
    return [deployment.folder / host / "git" / AGENT / "objects/pack" for host in hosts]
