"""Slow parallel uploads of large files: a server holds a small part of each in memory."""

import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import httpx2 as httpx
import pytest

from tests.storage.server_process import StorageServerProcess, server_process

MIB = 1024**2
SIZE, PIECE = 32 * MIB, 128 * 1024
FORMS, PARTS = 5, 3
MORE = 80 * MIB
"""Bytes that these uploads, 256 MiB, may take above what an idle server has."""
HEAD = b'--edge\r\nContent-Disposition: form-data; name="file"; filename="a.bin"\r\n\r\n'
END = b"\r\n--edge--\r\n"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[StorageServerProcess]:
    with server_process(tmp_path / "data") as process:
        yield process


def memory(process: StorageServerProcess, field: str) -> int:
    lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{field}:"))


def client(process: StorageServerProcess) -> httpx.Client:
    headers = {"Host": f"uploads.localhost:{process.port}", "Authorization": f"Bearer {process.key}"}
    return httpx.Client(base_url=f"http://127.0.0.1:{process.port}", headers=headers, timeout=60, trust_env=False)


class Upload:
    """Upload whose head was sent; `pieces` are still to be sent."""

    def __init__(
        self, process: StorageServerProcess, request: str, headers: str, before: bytes, after: bytes, mark: int
    ) -> None:
        self.socket = socket.create_connection(("127.0.0.1", process.port), timeout=60)
        length = len(before) + SIZE + len(after)
        head = f"{request} HTTP/1.1\r\nHost: uploads.localhost:{process.port}\r\nConnection: close\r\n{headers}\r\n"
        self.socket.sendall(f"{head}Content-Length: {length}\r\n\r\n".encode() + before)
        self.pieces = [bytes((mark,)) * PIECE] * (SIZE // PIECE) + [after]

    def status(self) -> int:
        answer = b""
        while block := self.socket.recv(65536):
            answer += block
        return int(answer.split()[1])


def form(process: StorageServerProcess, mark: int) -> Upload:
    headers = f"Authorization: Bearer {process.key}\r\nContent-Type: multipart/form-data; boundary=edge"
    return Upload(process, "POST /v3/files", headers, HEAD, END, mark)


def part(process: StorageServerProcess, mark: int) -> Upload:
    with client(process) as api:
        begun = api.post("/v3/files", headers={"Upload-Length": str(SIZE)})
    assert begun.status_code == 201, begun.text
    headers = "Content-Type: application/offset+octet-stream\r\nUpload-Offset: 0"
    return Upload(process, f"PATCH {urlsplit(begun.headers['Location']).path}", headers, b"", b"", mark)


def test_uploads_side_by_side_take_little_memory(server: StorageServerProcess) -> None:
    with client(server) as api:
        assert api.post("/v3/files", files={"file": ("a.bin", b"warm")}).status_code == 200
    idle = memory(server, "VmRSS")
    Path(f"/proc/{server.pid}/clear_refs").write_text("5")  # the peak is measured from here on
    with ExitStack() as stack:
        uploads = [form(server, mark) for mark in range(FORMS)] + [part(server, FORMS + mark) for mark in range(PARTS)]
        for upload in uploads:
            stack.callback(upload.socket.close)
        for pieces in zip(*(upload.pieces for upload in uploads), strict=True):
            for upload, piece in zip(uploads, pieces, strict=True):
                upload.socket.sendall(piece)
        assert [upload.status() for upload in uploads] == [200] * FORMS + [204] * PARTS
    more = memory(server, "VmHWM") - idle
    assert more < MORE, f"{more / MIB:.1f} MiB"
    with client(server) as api:
        files = api.get("/v3/files/private", params={"limit": "100"}).json()["data"]["files"]
    assert sorted(file["size"] for file in files) == [4, *[SIZE] * (FORMS + PARTS)]
