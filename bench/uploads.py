"""Uploads over HTTP as forms, durable when they are answered: speed, memory, and a folder of many small files.

The references are SHA-256 of the same file on one core, and a plain copy with fsync.
"""

import hashlib
import os
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from bench.processes import read_memory
from bench.row import Row
from bench.timing import measure_seconds
from tests.journeys.server_process import ServerProcess, up

_SIZE = 1024**3
_PIECE = 1024**2
_ROUNDS = 5
_PARALLEL = 8
_SMALL = 3000
_MB = 1e6
_SHORTFALL = (
    "A copy of the file with fsync, which neither checks nor hashes, is the limit: the disk's and the kernel's time."
)
_BOUNDARY = "the-boundary-of-the-benchmark"


def run(folder: Path) -> Iterator[Row]:
    file = folder / "file"
    with file.open("wb") as out:
        for _ in range(_SIZE // _PIECE):
            out.write(os.urandom(_PIECE))
    small = _write_small_files(folder / "small")
    with up(folder / "data", "--no-first-agent", ROOST_UPLOAD_PAID="2G") as server:
        client = _UploadClient(server)
        client.send([file], "first")  # the first upload after a start loads what all others use
        idle = read_memory(server.pid, "VmRSS")
        rounds = [_measure_round(client, file, folder / "copy") for _ in range(_ROUNDS)]
        hashed, sent, copied = zip(*rounds, strict=True)
        others = {"copied and synced": copied}
        reference, goal = "sha256 of the same file", ">= 0.45 x"
        yield Row("upload, 1 GiB, durable", sent, "MB/s", reference, hashed, goal, others, _SHORTFALL)
        one = read_memory(server.pid, "VmHWM") - idle
        yield Row("memory of the server above idle: uploads of 1 GiB", one, "MB", goal="< 80 MB")
        _run_in_parallel([lambda name=f"p{number}": client.send([file], name) for number in range(_PARALLEL)])
        eight = read_memory(server.pid, "VmHWM") - idle
        yield Row(f"memory of the server above idle: {_PARALLEL} of them at once", eight, "MB", goal="< 80 MB")
        folders = measure_seconds(lambda: client.send(small, "folder")) * 1000
        yield Row(f"upload of a folder of {_SMALL:,} small files", folders, "ms", goal="<= 2000 ms")


def _measure_round(client: "_UploadClient", file: Path, copy: Path) -> Sequence[float]:
    """Return the MB/s of SHA-256, of an upload and of a copy, in turns, so that a busy machine affects all alike."""
    _change_content(file)
    actions = (lambda: _sha256(file), lambda: client.send([file], "round"), lambda: _copy(file, copy))
    speeds = [_SIZE / _MB / measure_seconds(action) for action in actions]
    copy.unlink()
    os.sync()  # so that pending writes do not slow down the next upload
    return speeds


class _UploadClient:
    """Client over plain sockets, so that the figures do not include an HTTP library."""

    def __init__(self, server: ServerProcess) -> None:
        self._port = int(server.url.rpartition(":")[2])
        self._token = server.session["token"]

    def send(self, files: Sequence[Path], folder: str) -> None:
        """Send a form with these files; several files are in a folder."""
        heads = [_head(path.name if len(files) == 1 else f"{folder}/{path.name}") for path in files]
        tail = f"\r\n--{_BOUNDARY}--\r\n".encode()
        length = sum(map(len, heads)) + sum(path.stat().st_size for path in files) + len(tail)
        with socket.create_connection(("127.0.0.1", self._port), timeout=120) as connection:
            connection.sendall(self._request(length))
            for head, path in zip(heads, files, strict=True):
                connection.sendall(head)
                with path.open("rb") as content:
                    connection.sendfile(content)
            connection.sendall(tail)
            answer = connection.makefile("rb").readline()
        assert answer.startswith(b"HTTP/1.1 200 "), answer

    def _request(self, length: int) -> bytes:
        lines = (
            "POST /v3/files HTTP/1.1",
            f"Host: uploads.localhost:{self._port}",
            f"Authorization: Bearer {self._token}",
            f"Content-Type: multipart/form-data; boundary={_BOUNDARY}",
            f"Content-Length: {length}",
            "",
            "",
        )
        return "\r\n".join(lines).encode()


def _head(name: str) -> bytes:
    disposition = f'Content-Disposition: form-data; name="file"; filename="{name}"'
    return f"\r\n--{_BOUNDARY}\r\n{disposition}\r\n\r\n".encode()


def _change_content(file: Path) -> None:
    """Change the file, because known content is received and then dropped, which takes over 0.1 s for a GiB."""
    with file.open("r+b") as content:
        content.write(os.urandom(32))


def _sha256(path: Path) -> bytes:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").digest()


def _copy(source: Path, target: Path) -> None:
    with source.open("rb") as read, target.open("wb") as write:
        while piece := read.read(_PIECE):
            write.write(piece)
        write.flush()
        os.fsync(write.fileno())


def _run_in_parallel(works: Sequence[Callable[[], None]]) -> None:
    threads = [threading.Thread(target=work) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _write_small_files(folder: Path) -> Sequence[Path]:
    folder.mkdir()
    paths = [folder / f"{number}.txt" for number in range(_SMALL)]
    for number, path in enumerate(paths):
        path.write_bytes(f"the content of small file {number}\n".encode() * 30)
    return paths
