"""The contract of Git repositories, with the real Git in real sandboxes."""

import asyncio
import os
import shutil
import stat
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from roost.core.db import Database
from roost.drivers.blob.folder_store import FolderStore
from roost.drivers.git.contract import (
    BadGitRequest,
    EntryKind,
    GitChange,
    GitDeletion,
    GitEntry,
    GitFailed,
    GitFile,
    GitLink,
    GitRepositories,
    GitRequest,
    GitService,
    UnknownCommit,
)
from roost.drivers.git.repositories import SandboxedRepositories
from tests.conformance.git_objects import body_of, git, packet
from tests.conformance.sandboxes import MakeSandbox, bwrap, landlock
from tests.support.git_deployment import GitDeployment, add_agents

pytestmark = pytest.mark.container
AGENT = "ada"
NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def open_repositories(folder: Path, make_sandbox: MakeSandbox) -> GitRepositories:
    """Open the repositories in a folder, of a server whose deployment has them if the folder has a database."""
    if (file := folder / "roost.db").exists():
        deployment = GitDeployment(folder, Database(f"sqlite:///{file}"), FolderStore(folder / "blobs"))
        return deployment.open_server("first", folder / "data")
    return SandboxedRepositories(folder / "data/git", make_sandbox(folder / "data"))


@pytest.fixture(params=["bwrap", "landlock", "bucket"])
def kind(request: pytest.FixtureRequest) -> str:
    """How commands are confined, or that the blob store has the repositories."""
    return request.param


@pytest.fixture
def make_sandbox(kind: str) -> MakeSandbox:
    return landlock if kind == "landlock" else bwrap


@pytest.fixture
def repositories(
    request: pytest.FixtureRequest, tmp_path: Path, kind: str, make_sandbox: MakeSandbox
) -> GitRepositories:
    if kind == "bucket":
        for folder in (tmp_path, tmp_path / "copy"):
            folder.mkdir(exist_ok=True)
            shutil.copy(request.getfixturevalue("_sqlite_template"), folder / "roost.db")
            db = Database(f"sqlite:///{folder / 'roost.db'}")
            db.run(lambda connection: add_agents(connection, AGENT, "bob"))
            db.close()
    return open_repositories(tmp_path, make_sandbox)


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """The folder of the agent's repository."""
    return tmp_path / "data/git" / AGENT


def file(path: str, content: bytes = b"text", *, size: int | None = None, executable: bool = False) -> GitFile:
    return GitFile(path, len(content) if size is None else size, body_of(content), executable)


async def listed(*changes: GitChange) -> AsyncIterator[GitChange]:
    for change in changes:
        yield change


async def commit(git: GitRepositories, parent: str | None, *changes: GitChange, base: str | None = "") -> str:
    """Commit changes to the tree of the parent, or of another base."""
    base = parent if base == "" else base
    return await git.commit(AGENT, parent, base, listed(*changes), "a message", "Ada <ada@example.com>", NOW)


async def paths(git: GitRepositories, commit: str) -> Sequence[str]:
    return [entry.path async for entry in git.list_changes(AGENT, None, commit)]


async def test_git_is_available(repositories: GitRepositories, tmp_path: Path) -> None:
    assert (await repositories.check_available()).startswith("git version ")
    assert os.listdir(tmp_path / "data/git") == []  # noqa: PTH208 - names only


async def test_an_agent_without_commits_has_no_head(repositories: GitRepositories) -> None:
    assert await repositories.head(AGENT) is None
    await repositories.delete(AGENT)
    assert await repositories.find_unfinished_push(AGENT) is None


async def test_a_commit_has_the_files_and_is_the_head(repositories: GitRepositories, bare: Path) -> None:
    odd = 'odd \n"\\\udcff ü'
    made = await commit(
        repositories, None, file("a/run", b"#!", executable=True), file(odd, b""), GitLink("link", "../\udcff")
    )
    assert await repositories.head(AGENT) == made
    assert [entry async for entry in repositories.list_changes(AGENT, None, made)] == [
        GitEntry("a/run", EntryKind.EXECUTABLE, git(bare, "rev-parse", f"{made}:a/run")),
        GitEntry("link", EntryKind.LINK, git(bare, "rev-parse", f"{made}:link")),
        GitEntry(odd, EntryKind.FILE, "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"),
    ]
    assert git(bare, "symbolic-ref", "HEAD") == "refs/heads/main"
    assert (
        git(bare, "log", "-1", "--format=%an %ae %at %cn %B", made)
        == f"Ada ada@example.com {NOW.timestamp():.0f} Ada a message"
    )
    assert git(bare, "fsck", "--strict", "--full") == ""


async def test_changes_are_made_to_the_parent(repositories: GitRepositories) -> None:
    first = await commit(repositories, None, file("kept"), file("gone/x"), file("gone/y"), file("turned"))
    second = await commit(repositories, first, GitDeletion("gone"), GitDeletion("missing"), file("turned/into", b"new"))
    assert await paths(repositories, second) == ["kept", "turned/into"]
    third = await commit(repositories, second, file("only"), base=None)
    assert await paths(repositories, third) == ["only"]
    beside = await commit(repositories, first, file("beside"))
    assert await repositories.head(AGENT) == beside, "the head moves whatever it was"
    assert await commit(repositories, second, file("kept"), file("turned/into", b"new"), base=None) == second
    assert await repositories.head(AGENT) == second, "a tree that the parent has makes no commit"
    assert await commit(repositories, beside, GitDeletion("gone"), base=third) not in {beside, third}


async def test_names_that_git_reserves_are_left_out(repositories: GitRepositories, bare: Path) -> None:
    names = [".git/config", "a/.GIT", "git~1", ".g\u200cit/x", ".git. ", ".git::$INDEX", "a\\.git", ".gitignore"]
    made = await commit(repositories, None, *map(file, names), GitLink(".gitmodules", "x"), file(".gitmodules"))
    assert await paths(repositories, made) == [".gitignore", ".gitmodules"]
    assert git(bare, "fsck", "--strict", "--full") == ""


async def test_a_failed_commit_changes_nothing(repositories: GitRepositories, bare: Path) -> None:
    first = await commit(repositories, None, file("a"))

    async def broken() -> AsyncIterator[bytes]:
        yield b"1"
        raise RuntimeError("no more")

    with pytest.raises(RuntimeError):
        await commit(repositories, first, GitFile("b", 5, broken()))
    for unfit in (file("b", b"123", size=4), file("b", b"123", size=2), file("../b"), file("/b"), file("a//b")):
        with pytest.raises(GitFailed):
            await commit(repositories, first, unfit)
    with pytest.raises(UnknownCommit):
        await commit(repositories, "1" * 40, file("b"))
    with pytest.raises(UnknownCommit):
        await commit(repositories, "--upload-pack=x", file("b"))
    assert await repositories.head(AGENT) == first
    await commit(repositories, first, file("c"))
    assert not list(bare.glob("objects/pack/tmp_*")), "remains of killed imports are removed"


async def test_the_head_moves_to_known_commits_only(repositories: GitRepositories) -> None:
    first = await commit(repositories, None, file("a"))
    second = await commit(repositories, first, file("b"))
    await repositories.set_head(AGENT, first)
    assert await repositories.head(AGENT) == first
    await repositories.set_head(AGENT, second)
    blob = next(iter([entry.blob async for entry in repositories.list_changes(AGENT, None, second)]))
    for unknown in ("0" * 40, "main", blob):
        with pytest.raises(UnknownCommit):
            await repositories.set_head(AGENT, unknown)
    assert await repositories.head(AGENT) == second


async def test_the_head_is_found_however_git_keeps_it(repositories: GitRepositories, bare: Path) -> None:
    made = await commit(repositories, None, file("a"))
    git(bare, "pack-refs", "--all")
    assert not (bare / "refs/heads/main").exists()
    assert await repositories.head(AGENT) == made
    (bare / "refs/heads/main").symlink_to("/etc/hostname")
    assert await repositories.head(AGENT) in {None, made}, "no link out of the repository is followed"


async def test_changes_between_commits_are_listed(repositories: GitRepositories) -> None:
    first = await commit(repositories, None, file("same"), file("mode"), file("gone"), file("x"))
    second = await commit(
        repositories, first, GitDeletion("gone"), file("mode", executable=True), GitDeletion("x"), file("x/y", b"new")
    )
    changes = {entry.path: entry.kind async for entry in repositories.list_changes(AGENT, first, second)}
    assert changes == {
        "gone": EntryKind.DELETED, "mode": EntryKind.EXECUTABLE, "x": EntryKind.DELETED, "x/y": EntryKind.FILE
    }  # fmt: skip
    assert [entry.path async for entry in repositories.list_changes(AGENT, None, first)] == [
        "gone",
        "mode",
        "same",
        "x",
    ]
    with pytest.raises(UnknownCommit):
        [entry async for entry in repositories.list_changes(AGENT, first, "2" * 40)]


async def test_blobs_are_read_in_their_order_and_skipped_unread(repositories: GitRepositories) -> None:
    large = os.urandom(3 * 1024**2)
    made = await commit(repositories, None, file("a", b"first"), file("b", large), file("c", b""))
    ids = {entry.path: entry.blob async for entry in repositories.list_changes(AGENT, None, made)}
    found: list[bytes] = []
    async with aclosing(repositories.read_blobs(AGENT, [ids["b"], ids["a"], ids["b"], ids["c"]])) as blobs:
        async for blob in blobs:
            if len(found) != 2:
                found.append(b"".join([chunk async for chunk in blob.content]))
            else:
                found.append(str(blob.size).encode())
    assert found == [large, b"first", b"%d" % len(large), b""]
    with pytest.raises(GitFailed):
        [blob async for blob in repositories.read_blobs(AGENT, ["3" * 40])]


async def test_a_repository_belongs_to_a_user_of_its_own(
    repositories: GitRepositories, bare: Path, make_sandbox: MakeSandbox
) -> None:
    await commit(repositories, None, file("a"))
    await repositories.commit("bob", None, None, listed(file("b")), "m", "Bob", NOW)
    other = bare.with_name("bob")
    if os.geteuid() == 0 and make_sandbox is bwrap:
        assert len({0, bare.stat().st_uid, other.stat().st_uid}) == 3
    assert stat.S_IMODE(bare.stat().st_mode) == 0o700
    await repositories.delete(AGENT)
    await repositories.delete(AGENT)
    assert not bare.exists()
    assert await repositories.head(AGENT) is None
    assert await repositories.head("bob") is not None


async def test_another_process_finds_the_repository_and_clears_remains(
    repositories: GitRepositories, bare: Path, tmp_path: Path, make_sandbox: MakeSandbox
) -> None:
    first = await commit(repositories, None, file("a"))
    (bare / "refs/heads/main.lock").touch()  # of a server that was killed
    (bare / "objects/tmp_objdir-incoming-x").mkdir()
    again = open_repositories(tmp_path, make_sandbox)
    assert await again.head(AGENT) == first
    assert await commit(again, first, file("b")) == await again.head(AGENT)
    assert not list(bare.glob("objects/tmp_objdir-*"))


async def test_commits_at_once_are_one_after_another(repositories: GitRepositories) -> None:
    first = await commit(repositories, None, file("a"))
    made = await asyncio.gather(*(commit(repositories, first, file(f"f{number}")) for number in range(4)))
    assert await repositories.head(AGENT) in made
    assert len(set(made)) == 4


async def test_many_commits_stay_few_packs(repositories: GitRepositories, bare: Path) -> None:
    made = None
    for number in range(55):
        made = await commit(repositories, made, file("a", str(number).encode()))
    assert len(list(bare.glob("objects/pack/*.pack"))) < 20
    assert git(bare, "fsck", "--strict", "--full") == ""
    assert int(git(bare, "rev-list", "--count", "main")) == 55


async def test_nothing_in_a_repository_is_executed_or_read_as_configuration(
    repositories: GitRepositories, bare: Path, tmp_path: Path, make_sandbox: MakeSandbox
) -> None:
    """Even what only a hostile Git could have written there changes no command."""
    made = await commit(repositories, None, file("a"), file(".gitattributes", b"* filter=x diff=x"))
    (bare / "hooks").mkdir()
    for hook in ("post-commit", "reference-transaction", "pre-receive"):
        path = bare / "hooks" / hook
        path.write_text("#!/bin/sh\ntouch executed\n")
        path.chmod(0o755)
    # Without a file system of its own, a sandbox refuses a file of the machine instead of hiding it: Git then ends.
    included = "/etc/passwd" if make_sandbox is bwrap else tmp_path / "missing"
    with (bare / "config").open("a") as config:
        config.write(f"[core]\n\thooksPath = hooks\n\tfsmonitor = {tmp_path}/x\n[include]\n\tpath = {included}\n")
    second = await commit(repositories, made, file("b"))
    await repositories.set_head(AGENT, made)
    assert [entry.path async for entry in repositories.list_changes(AGENT, made, second)] == ["b"]
    assert not (bare / "executed").exists()


@pytest.mark.parametrize("name", ["refs/heads", "objects/pack"])
async def test_nothing_is_written_through_links(
    repositories: GitRepositories, bare: Path, tmp_path: Path, name: str
) -> None:
    first = await commit(repositories, None, file("a"))
    (bare / name).rename(tmp_path / "elsewhere")
    (bare / name).symlink_to(tmp_path / "elsewhere")
    before = sorted((tmp_path / "elsewhere").iterdir())
    with pytest.raises(GitFailed):
        await commit(repositories, first, file("b"))
    assert sorted((tmp_path / "elsewhere").iterdir()) == before


async def answer(git: GitRepositories, service: GitService, body: bytes | None = None, protocol: str = "") -> bytes:
    request = GitRequest(service, protocol, None if body is None else body_of(body))
    return b"".join([chunk async for chunk in git.serve(AGENT, request)])


async def test_references_are_advertised_in_both_protocols(repositories: GitRepositories) -> None:
    made = await commit(repositories, None, file("a"))
    old = await answer(repositories, GitService.UPLOAD_PACK)
    assert f"{made} refs/heads/main".encode() in old
    capabilities = await answer(repositories, GitService.UPLOAD_PACK, protocol="version=2")
    assert b"version 2" in capabilities
    assert await answer(repositories, GitService.UPLOAD_PACK, protocol="version=2") == capabilities
    assert await answer(repositories, GitService.UPLOAD_PACK, protocol="version=2\n;x") == old


async def test_a_push_sees_main_only(repositories: GitRepositories, bare: Path) -> None:
    empty = await answer(repositories, GitService.RECEIVE_PACK)
    assert empty[4:].startswith(f"{'0' * 40} capabilities^{{}}\0report-status ".encode())
    made = await commit(repositories, None, file("a"))
    git(bare, "tag", "other", made)
    listed = await answer(repositories, GitService.RECEIVE_PACK, protocol="version=1")
    assert listed[4:].startswith(f"{made} refs/heads/main\0report-status ".encode())
    assert listed.endswith(b"\n0000")
    assert b"other" not in listed
    git(bare, "pack-refs", "--all")
    assert await answer(repositories, GitService.RECEIVE_PACK) == listed


async def test_a_fetch_is_answered_with_a_pack(repositories: GitRepositories) -> None:
    made = await commit(repositories, None, file("a", os.urandom(1024**2)))
    want = packet(f"want {made} ofs-delta\n".encode()) + b"0000" + packet(b"done\n")
    response = await answer(repositories, GitService.UPLOAD_PACK, want)
    assert response.startswith(packet(b"NAK\n") + b"PACK")
    assert len(response) > 1024**2


async def test_requests_that_are_none_are_refused(repositories: GitRepositories) -> None:
    await commit(repositories, None, file("a"))
    for body in (b"garbage", b"ffff", b"0009wa"):
        with pytest.raises(BadGitRequest):
            await answer(repositories, GitService.UPLOAD_PACK, body)


async def test_a_failing_body_ends_the_command(repositories: GitRepositories) -> None:
    async def body() -> AsyncIterator[bytes]:
        yield b"00"
        raise ConnectionAbortedError("the client left")

    request = GitRequest(GitService.UPLOAD_PACK, body=body())
    with pytest.raises((ConnectionAbortedError, BadGitRequest)):
        [chunk async for chunk in repositories.serve(AGENT, request)]


async def test_files_make_a_copy_with_what_changed_since(
    repositories: GitRepositories, tmp_path: Path, make_sandbox: MakeSandbox
) -> None:
    copy = open_repositories(tmp_path / "copy", make_sandbox)
    first = await commit(repositories, None, file("a", b"one"))
    began = datetime.now(UTC)
    await copy.copier.write(AGENT, repositories.copier.read(AGENT))
    assert await copy.head(AGENT) == first
    second = await commit(repositories, first, file("b", b"two"))
    await repositories.set_head(AGENT, first)  # so that only `second` itself is new
    changes = [chunk async for chunk in repositories.copier.read(AGENT, began)]
    await copy.copier.write(AGENT, listed_bytes(changes))
    assert await copy.head(AGENT) == first
    await copy.set_head(AGENT, second)
    assert await paths(copy, second) == ["a", "b"]
    assert await commit(copy, second, file("c", b"three")) != second


async def test_an_archive_without_its_end_is_refused(
    repositories: GitRepositories, tmp_path: Path, make_sandbox: MakeSandbox
) -> None:
    copy = open_repositories(tmp_path / "copy", make_sandbox)
    old = await commit(copy, None, file("a", b"old"))
    await commit(repositories, None, file("a", os.urandom(100_000)))
    whole = b"".join([chunk async for chunk in repositories.copier.read(AGENT)])
    with pytest.raises(GitFailed):
        await copy.copier.write(AGENT, listed_bytes([whole[: len(whole) // 2]]))
    await copy.copier.write(AGENT, listed_bytes([whole]))
    assert await copy.head(AGENT) == await repositories.head(AGENT) != old


async def test_an_agent_without_a_repository_has_no_files(repositories: GitRepositories) -> None:
    assert [chunk async for chunk in repositories.copier.read(AGENT)] == []


async def listed_bytes(chunks: Sequence[bytes]) -> AsyncIterator[bytes]:
    for chunk in chunks:
        yield chunk
