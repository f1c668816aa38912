"""A storage gateway, compared with Caddy on the same files: small and large files, and the last byte of one."""

import asyncio
import contextlib
import os
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import httpx2 as httpx
import uvloop

from bench.load import send_requests
from bench.processes import caddy_environment, find_caddy, free_port, run_process
from bench.row import Row
from bench.timing import take_turns, time_in_turns
from tests.journeys.server_process import ServerProcess, up

_SMALL, _CHUNK, _BIG, _HUGE = 4 * 1024, 1024**2, 100 * 1024**2, 1024**3
_GETS, _CONNECTIONS, _LAST_BYTES = 4_000, 16, 40
_LAST = "bytes=-1"
_SHORTFALL = (
    "The server hashes all that it sends, in Python; Caddy hashes nothing. The processor decides: on an AMD EPYC it "
    "was 1.07 x for small files and 0.97 x for large ones."
)
_REFERENCE = "Caddy's file server"


def run(folder: Path) -> Iterator[Row]:
    files = folder / "files"
    files.mkdir()
    sizes = {"small": _SMALL, "chunk": _CHUNK, "big": _BIG, "huge": _HUGE}
    for name, size in sizes.items():
        _fill(files / name, size)
    with (
        up(folder / "data", "--no-first-agent", ROOST_UPLOAD_PAID="2G") as server,
        _file_server(folder) as port,
        httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60, trust_env=False) as theirs,
    ):
        ours = _Gateway(server)
        paths = {name: f"/ipfs/{ours.upload(files / name)}" for name in sizes}
        own = partial(_rate, ours.port, ours.host, paths["small"])
        rates, their_rates = take_turns(own, partial(_rate, port, f"localhost:{port}", "/small"))
        name = "gateway: GETs of 4 KiB, verified"
        yield Row(name, rates, "/s", _REFERENCE, their_rates, ">= 0.85 x", shortfall=_SHORTFALL)
        with ours.client as mine:
            speeds, their_speeds = take_turns(partial(_speed, mine, paths["big"]), partial(_speed, theirs, "/big"))
            name = "gateway: GET of 100 MiB, verified"
            yield Row(name, speeds, "MB/s", _REFERENCE, their_speeds, ">= 0.9 x", shortfall=_SHORTFALL)
            first, far = (partial(_get_last_byte, mine, paths[name]) for name in ("chunk", "huge"))
            near, away = time_in_turns(first, far, rounds=_LAST_BYTES, warm=10)
            yield Row("gateway: the last byte of 1 GiB, p50", away, "ms", "of a file of 1 MiB", near, "<= 1.3 x")


class _Gateway:
    """Client of a server's first gateway and of its uploads."""

    def __init__(self, server: ServerProcess) -> None:
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
    """Return the responses per second over several connections."""
    request = f"GET {path} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: bench\r\nAccept: */*\r\n\r\n".encode()
    began = time.perf_counter()
    uvloop.run(asyncio.wait_for(send_requests(port, request, _GETS, _CONNECTIONS), 60))
    return _GETS / (time.perf_counter() - began)


def _speed(client: httpx.Client, path: str) -> float:
    """Return the MB/s of one download."""
    began = time.perf_counter()
    with client.stream("GET", path) as answer:
        assert sum(len(piece) for piece in answer.iter_raw(1024**2)) == _BIG
    return _BIG / 1e6 / (time.perf_counter() - began)


def _get_last_byte(client: httpx.Client, path: str) -> None:
    client.get(path, headers={"Range": _LAST}).raise_for_status()


@contextlib.contextmanager
def _file_server(folder: Path) -> Iterator[int]:
    """Serve the folder `files` with Caddy; yield the port."""
    port = free_port()
    argv = [find_caddy(), "file-server", "--listen", f"127.0.0.1:{port}", "--root", str(folder / "files")]
    with run_process(argv, port, caddy_environment(folder)):
        yield port
