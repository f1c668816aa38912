"""A server that is killed during an upload keeps acknowledged files and drops the unfinished one."""

import socket
from pathlib import Path

import httpx2 as httpx

from tests.journeys.server_process import until, up

HEAD = b'--edge\r\nContent-Disposition: form-data; name="file"; filename="half.bin"\r\n\r\n'


def test_killed_during_an_upload(tmp_path: Path) -> None:
    with up(tmp_path / "data") as server:
        with server.client() as client:
            answer = client.post("/v3/files", files={"file": ("whole.txt", b"hello world")})
            assert answer.status_code == 200, answer.text
            whole = answer.json()["data"]
            with _half_sent(httpx.URL(server.url), client.headers["Authorization"]):
                until(lambda: any(path.stat().st_size >= 1024**2 for path in (tmp_path / "data" / "blobs").rglob("*")))
                server.kill()
        server.start()
        with server.client() as client:
            files = client.get("/v3/files/private").json()["data"]["files"]
            assert [file["id"] for file in files] == [whole["id"]]
            again = client.post("/v3/files", files={"file": ("whole.txt", b"hello world")}).json()["data"]
            assert (again["id"], again["is_duplicate"]) == (whole["id"], True)


def _half_sent(url: httpx.URL, credential: str) -> socket.socket:
    """Return the connection of an upload that stops halfway."""
    line = socket.create_connection((url.host, url.port or 80))
    head = f"POST /v3/files HTTP/1.1\r\nHost: localhost\r\nAuthorization: {credential}\r\n"
    form = "Content-Type: multipart/form-data; boundary=edge\r\nContent-Length: 9000000\r\n\r\n"
    line.sendall((head + form).encode() + HEAD + bytes(4_000_000))
    return line
