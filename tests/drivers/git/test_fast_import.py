"""The stream of a commit, as bytes."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime

import pytest

from roost.drivers.git.contract import GitChange, GitClear, GitDeletion, GitFailed, GitFile, GitLink
from roost.drivers.git.fast_import import commit_stream

TIME = datetime.fromtimestamp(1_700_000_000, UTC)


async def written(
    *changes: GitChange, parent: str | None = None, message: str = "m", author: str = "Ada <a@b>"
) -> bytes:
    async def listed() -> AsyncIterator[GitChange]:
        for change in changes:
            yield change

    return b"".join([part async for part in commit_stream(parent, listed(), message, author, TIME)])


async def content(*chunks: bytes) -> AsyncIterator[bytes]:
    for chunk in chunks:
        yield chunk


HEAD = b"commit refs/heads/main\nauthor Ada <a@b> 1700000000 +0000\ncommitter Ada <a@b> 1700000000 +0000\ndata 1\nm\n"
END = b"\ndone\n"


async def test_a_stream_has_the_changes_in_their_order() -> None:
    changes = (
        GitClear(),
        GitFile("a/b c", 3, content(b"1", b"23"), is_executable=True),
        GitLink("l", "to\ndeleteall"),
        GitDeletion('x"\\\n\udcff'),
    )
    assert await written(*changes, parent="1" * 40) == (
        HEAD
        + b"from " + b"1" * 40
        + b'\ndeleteall\nM 100755 inline "a/b\\040c"\ndata 3\n123\n'
        + b'M 120000 inline "l"\ndata 12\nto\ndeleteall\nD "x\\042\\134\\012\\377"\n'
        + END
    )  # fmt: skip


async def test_reserved_names_are_left_out() -> None:
    changes = GitFile(".GIT/x", 1, content(b"1")), GitLink("a/git~1", "x"), GitLink(".gitmodules", "x")
    assert await written(*changes) == HEAD + END


@pytest.mark.parametrize(
    ("author", "line"),
    [
        ("Ada", b"Ada <>"),
        ("Ada <a@b>\nM 100644", b"Ada a@bM 100644 <>"),
        ("<a@b>", b"agent <a@b>"),
        ("", b"agent <>"),
        ("Z\u00fc <\n>", "Z\u00fc <>".encode()),
        ("\ud800", b"? <>"),
    ],
)
async def test_an_author_is_one_line(author: str, line: bytes) -> None:
    assert (await written(author=author)).split(b"\n")[1] == b"author " + line + b" 1700000000 +0000"


async def test_a_message_cannot_end_early() -> None:
    assert b"data 4\na\nb\xc3\xbc\n".replace(b"4", b"5") in await written(message="a\nb\0ü")


@pytest.mark.parametrize("path", ["", "/a", "a/", "a//b", "../a", "a/./b", "..", "a\0"])
async def test_paths_of_no_tree_are_refused(path: str) -> None:
    for change in (GitDeletion(path), GitLink(path, "x"), GitFile(path, 0, content())):
        with pytest.raises(GitFailed):
            await written(change)


async def test_content_has_its_size() -> None:
    for size in (1, 3):
        with pytest.raises(GitFailed):
            await written(GitFile("a", size, content(b"12")))
