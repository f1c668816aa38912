"""Objects and requests of a Git client, made with the real one."""

import os
import subprocess
import zlib
from collections.abc import AsyncIterator, Sequence
from hashlib import sha1
from pathlib import Path

ZERO = "0" * 40
_ENV = {
    "PATH": os.environ["PATH"],
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "HOME": "/nonexistent",
    **{f"GIT_{who}_{what}": "test@example.com" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
}


def git(folder: Path, *arguments: str | Path, data: bytes = b"", check: bool = True, seconds: float = 60) -> str:
    """Run Git in a folder and return what it prints."""
    result = subprocess.run(
        ["git", "-c", "safe.directory=*", *arguments],
        cwd=folder, input=data, env=_ENV, capture_output=True, check=False, timeout=seconds,
    )  # fmt: skip
    assert not check or not result.returncode, result.stderr.decode()
    return result.stdout.decode(errors="surrogateescape").strip()


def commit_tree(folder: Path, tree: str, *parents: str) -> str:
    return git(folder, "commit-tree", tree, "-m", "test", *(part for parent in parents for part in ("-p", parent)))


def make_tree(folder: Path, entries: Sequence[tuple[str, bytes, str]]) -> str:
    """Store a tree of (mode, name, object) entries, however malformed."""
    body = b"".join(b"%b %b\0%b" % (mode.encode(), name, bytes.fromhex(item)) for mode, name, item in entries)
    return git(folder, "hash-object", "-t", "tree", "-w", "--literally", "--stdin", data=body)


def make_blob(folder: Path, content: bytes) -> str:
    return git(folder, "hash-object", "-w", "--stdin", data=content)


def make_pack(folder: Path, new: str, *old: str) -> bytes:
    """Return the pack of the objects that `new` has and `old` does not."""
    wanted = "\n".join((new, *(f"^{commit}" for commit in old))).encode()
    command = ["git", "pack-objects", "--stdout", "--revs", "-q"]
    return subprocess.run(command, cwd=folder, input=wanted, env=_ENV, capture_output=True, check=True).stdout


def packet(line: bytes) -> bytes:
    return b"%04x%b" % (len(line) + 4, line)


def push_request(pack: bytes, *updates: tuple[str | None, str | None, str]) -> bytes:
    """Return the body of a request to git-receive-pack (gitprotocol-pack(5))."""
    lines = [f"{old or ZERO} {new or ZERO} {ref}".encode() for old, new, ref in updates]
    lines[0] += b"\0report-status side-band-64k"
    return b"".join(map(packet, lines)) + b"0000" + pack


def push_of(folder: Path, new: str, old: str | None = None, ref: str = "refs/heads/main") -> bytes:
    return push_request(make_pack(folder, new, *([old] if old else [])), (old, new, ref))


def read_report(response: bytes) -> str:
    """Return what a push shows: messages of the server, errors and the report of references."""
    text = b""
    while response:
        size = int(response[:4], 16)
        text += response[5:size] if size > 4 else b""  # after the number of the band
        response = response[max(size, 4) :]
    return text.decode(errors="replace")


def delta_bomb(size: int) -> bytes:
    """Return a pack whose one delta makes an object of `size` bytes out of 64 KiB."""
    base = bytes(65536)
    copies = b"\xb0\x00\x00" * (size // 65536)  # offset 0, size 0: 64 KiB each
    delta = _delta_size(len(base)) + _delta_size(size // 65536 * 65536) + copies
    name = sha1(b"blob %d\0" % len(base) + base).digest()
    objects = [
        _pack_header(3, len(base)) + zlib.compress(base),
        _pack_header(7, len(delta)) + name + zlib.compress(delta),
    ]
    body = b"PACK" + (2).to_bytes(4, "big") + len(objects).to_bytes(4, "big") + b"".join(objects)
    return body + sha1(body).digest()


def _delta_size(size: int) -> bytes:
    out = bytearray()
    while size > 127:
        out.append(size & 127 | 128)
        size >>= 7
    return bytes([*out, size])


def _pack_header(kind: int, size: int) -> bytes:
    first, size = kind << 4 | size & 15, size >> 4
    return bytes([first | 128]) + _delta_size(size) if size else bytes([first])


async def body_of(data: bytes, chunk: int = 65536) -> AsyncIterator[bytes]:
    for start in range(0, len(data), chunk):
        yield data[start : start + chunk]
