"""Uploads over HTTP as forms, durable when they are answered: speed, memory, and a folder of many small files.

The references are SHA-256 of the same file on one core, and a plain copy with fsync.
"""

import hashlib
import os
import socket
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from bench.processes import read_memory
from bench.table import Row
from tests.journeys.server_process import Up, up

_SIZE = 1024**3
_PIECE = 1024**2
_ROUNDS = 4
_PARALLEL = 8
_SMALL = 3000
_MB = 1e6
_BOUNDARY = "the-boundary-of-the-benchmark"


def run(folder: Path) -> Sequence[Row]:
    file = folder / "file"
    with file.open("wb") as out:
        for _ in range(_SIZE // _PIECE):
            out.write(os.urandom(_PIECE))
    small = _write_small_files(folder / "small")
    with up(folder / "data", "--no-first-agent", ROOST_UPLOAD_PAID="2G") as server:
        client = _UploadClient(server)
        client.send([file], "first")  # the first upload after a start loads what all others use
        idle = read_memory(server.pid, "VmRSS")
        hashed = written = sent = 0.0
        for number in range(_ROUNDS):  # in turns, so that a busy machine affects all figures alike
            _change_content(file)
            hashed = max(hashed, _speed(lambda: _sha256(file)))
            sent = max(sent, _speed(lambda name=f"{number}": client.send([file], name)))
            written = max(written, _speed(lambda: _copy(file, folder / "copy")))
            (folder / "copy").unlink()
            os.sync()  # so that pending writes do not slow down the next upload
        one = read_memory(server.pid, "VmHWM") - idle
        _run_in_parallel([lambda name=f"p{number}": client.send([file], name) for number in range(_PARALLEL)])
        eight = read_memory(server.pid, "VmHWM") - idle
        began = time.perf_counter()
        client.send(small, "folder")
        folders = (time.perf_counter() - began) * 1000
    return [
        Row("upload, 1 GiB, durable", sent, "MB/s", "sha256 of the same file", hashed, ">= 45 %"),
        Row("upload, 1 GiB, durable", sent, "MB/s", "copied and synced", written, "reported"),
        Row("memory of the server above idle: uploads of 1 GiB", one, "MB", "limit", 80.0, "< 80 MB"),
        Row(f"the same, {_PARALLEL} of them at once", eight, "MB", "limit", 80.0, "< 80 MB"),
        Row(f"upload of a folder of {_SMALL:,} small files", folders, "ms", "limit", 2000.0, "<= 2 s"),
    ]


class _UploadClient:
    """Client over plain sockets, so that the figures do not include an HTTP library."""

    def __init__(self, server: Up) -> None:
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


def _speed(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return _SIZE / _MB / (time.perf_counter() - began)


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
