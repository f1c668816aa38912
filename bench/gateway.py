"""A storage gateway, compared with a file server on the same files: small and large files, and the last byte of one.

The file server is nginx if it is installed, otherwise Caddy.
"""

import asyncio
import contextlib
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import httpx2 as httpx
import uvloop

from bench.load import send_requests
from bench.processes import caddy_environment, find_caddy, find_nginx, free_port, run_process
from bench.table import Row, median_ms
from tests.journeys.server_process import Up, up

_SMALL, _CHUNK, _BIG, _HUGE = 4 * 1024, 1024**2, 100 * 1024**2, 1024**3
_GETS, _CONNECTIONS, _ROUNDS = 4_000, 16, 3
_LAST = "bytes=-1"
_NGINX = """
worker_processes auto;
daemon off;
error_log /dev/null;
pid {folder}/nginx.pid;
events {{ worker_connections 1024; }}
http {{
  access_log off;
  sendfile on;
  default_type application/octet-stream;
  client_body_temp_path {folder}; proxy_temp_path {folder}; fastcgi_temp_path {folder};
  uwsgi_temp_path {folder}; scgi_temp_path {folder};
  server {{ listen 127.0.0.1:{port}; root {files}; }}
}}
"""


def run(folder: Path) -> Sequence[Row]:
    files = folder / "files"
    files.mkdir()
    sizes = {"small": _SMALL, "chunk": _CHUNK, "big": _BIG, "huge": _HUGE}
    for name, size in sizes.items():
        _fill(files / name, size)
    with (
        up(folder / "data", "--no-first-agent", ROOST_UPLOAD_PAID="2G") as server,
        _file_server(folder) as (reference, port),
    ):
        ours = _Gateway(server)
        paths = {name: f"/ipfs/{ours.upload(files / name)}" for name in sizes}
        theirs = httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60, trust_env=False)
        with ours.client as mine, theirs:
            rate = _rate(ours.port, ours.host, paths["small"])
            their_rate = _rate(port, f"localhost:{port}", "/small")
            speed, their_speed = _speed(mine, paths["big"]), _speed(theirs, "/big")
            first, far = (_first_byte(mine, paths[name]) for name in ("chunk", "huge"))
    return [
        Row("gateway: GETs of 4 KiB, verified", rate, "/s", reference, their_rate, "reported"),
        Row("gateway: GET of 100 MiB, verified", speed, "MB/s", reference, their_speed, "reported"),
        Row("gateway: the last byte of 1 GiB, p50", far, "ms", "of a file of 1 MiB", first, "does not grow with size"),
    ]


class _Gateway:
    """Client of a server's first gateway and of its uploads."""

    def __init__(self, server: Up) -> None:
        self._api = server.client()
        self.port = int(server.url.rpartition(":")[2])
        self._uploads = {"Host": f"uploads.localhost:{self.port}"}
        rows = self._api.get("/v3/gateways", headers={"Host": f"api.localhost:{self.port}"}).raise_for_status().json()
        self.host = f"{rows['data']['rows'][0]['domain']}.gateways.localhost:{self.port}"
        self.client = httpx.Client(base_url=server.url, headers={"Host": self.host}, timeout=60, trust_env=False)

    def upload(self, path: Path) -> str:
        with path.open("rb") as content:
            answer = self._api.post(
                "/v3/files", headers=self._uploads, data={"network": "public"}, files={"file": (path.name, content)}
            )
        return answer.raise_for_status().json()["data"]["cid"]


def _fill(path: Path, size: int) -> None:
    piece = os.urandom(min(size, 1024**2))
    with path.open("wb") as file:
        for _ in range(size // len(piece)):
            file.write(piece)


def _rate(port: int, host: str, path: str) -> float:
    """Return the responses per second over several connections, the best of some rounds."""
    request = f"GET {path} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: bench\r\nAccept: */*\r\n\r\n".encode()
    best = 0.0
    for _ in range(_ROUNDS):
        began = time.perf_counter()
        uvloop.run(asyncio.wait_for(send_requests(port, request, _GETS, _CONNECTIONS), 60))
        best = max(best, _GETS / (time.perf_counter() - began))
    return best


def _speed(client: httpx.Client, path: str) -> float:
    def get() -> None:
        with client.stream("GET", path) as answer:
            assert sum(len(piece) for piece in answer.iter_raw(1024**2)) == _BIG

    return _BIG / 1000 / median_ms(get, 5)


def _first_byte(client: httpx.Client, path: str) -> float:
    def get() -> Any:
        return client.get(path, headers={"Range": _LAST}).raise_for_status()

    return median_ms(get, 200, warm=10)


@contextlib.contextmanager
def _file_server(folder: Path) -> Iterator[tuple[str, int]]:
    """Serve the folder `files`; yield the name and the port of the file server."""
    port, files = free_port(), folder / "files"
    installed = find_nginx()
    if installed is None:
        argv = [find_caddy(), "file-server", "--listen", f"127.0.0.1:{port}", "--root", str(files)]
        with run_process(argv, port, caddy_environment(folder)):
            yield "Caddy's file server", port
        return
    for path in (folder, files):
        path.chmod(0o755)  # the workers run as another user
    config = folder / "nginx.conf"
    config.write_text(_NGINX.format(folder=folder, files=files, port=port))
    with run_process([installed, "-c", str(config)], port):
        yield "nginx", port
