"""The stream of `git fast-import` (git-fast-import(1)) for one commit on `main`."""

import re
from collections.abc import AsyncGenerator, AsyncIterable
from datetime import datetime

from roost.drivers.git.contract import MAIN, GitChange, GitClear, GitDeletion, GitFailed, GitFile, GitLink
from roost.drivers.git.git_names import is_git_path

_AUTHOR = re.compile(r"(?P<name>[^<>]*)(?:<(?P<address>[^<>]*)>)?\s*")
_FORBIDDEN = re.compile(r"[\x00-\x1f\x7f<>]")
_PLAIN = re.compile(rb"[^\x21\x23-\x5b\x5d-\x7e]")  # neither printable ASCII, nor quote or backslash


async def commit_stream(
    parent: str | None, changes: AsyncIterable[GitChange], message: str, author: str, time: datetime
) -> AsyncGenerator[bytes]:
    """Yield the commands of a commit. Raises GitFailed for unfit changes."""
    identity = f"{_format_author(author)} {int(time.timestamp())} +0000"
    text = message.replace("\0", "").encode(errors="replace")
    yield f"commit {MAIN}\nauthor {identity}\ncommitter {identity}\n".encode(errors="replace")
    yield b"data %d\n%b\n" % (len(text), text)
    if parent is not None:
        yield f"from {parent}\n".encode()
    async for change in changes:
        async for part in _change_commands(change):
            yield part
    yield b"\ndone\n"


async def _change_commands(change: GitChange) -> AsyncGenerator[bytes]:
    match change:
        case GitClear():
            yield b"deleteall\n"
        case GitDeletion(path):
            yield b"D %b\n" % _quote_path(path)
        case GitLink(path, target):
            if not is_git_path(path, is_link=True):
                encoded = target.encode(errors="surrogateescape")
                yield b"M 120000 inline %b\ndata %d\n%b\n" % (_quote_path(path), len(encoded), encoded)
        case GitFile(path, size, content, is_executable):
            if not is_git_path(path, is_link=False):
                mode = b"100755" if is_executable else b"100644"
                yield b"M %b inline %b\ndata %d\n" % (mode, _quote_path(path), size)
                async for chunk in content:
                    size -= len(chunk)
                    if size < 0:
                        break
                    yield chunk
                if size:
                    raise GitFailed(f"The content of {path!a} has another size than it was said to have")
                yield b"\n"


def _format_author(author: str) -> str:
    found = _AUTHOR.fullmatch(author)
    name, address = (found["name"], found["address"] or "") if found else (author, "")
    return f"{_FORBIDDEN.sub('', name).strip(' .,:;') or 'agent'} <{_FORBIDDEN.sub('', address).strip()}>"


def _quote_path(path: str) -> bytes:
    """Quote a path as Git does. Raises GitFailed for one that is no relative path of a tree."""
    if "\0" in path or any(part in {"", ".", ".."} for part in path.split("/")):
        raise GitFailed(f"{path!a} cannot be a path in a commit")
    encoded = path.encode(errors="surrogateescape")
    return b'"%b"' % _PLAIN.sub(lambda found: b"\\%03o" % found[0][0], encoded)
