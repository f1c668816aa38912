"""A storage gateway beside Caddy's file server on the same files: small and large content, and one byte of any file."""

import asyncio
import contextlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import httpx2 as httpx

from bench.table import Row, median_ms
from roost.hosts.server import listen
from tests.journeys.server_process import Up, until, up

_SMALL, _BIG, _HUGE = 4 * 1024, 100 * 1024**2, 1024**3
_GETS, _CONNECTIONS = 3_000, 16
_LAST = "bytes=-1"


def run(folder: Path) -> Sequence[Row]:
    files = folder / "files"
    files.mkdir()
    sizes = {"small": _SMALL, "big": _BIG, "huge": _HUGE}
    for name, size in sizes.items():
        _fill(files / name, size)
    with up(folder / "data", "--no-first-agent", ROOST_UPLOAD_PAID="2G") as server, _caddy(files) as caddy:
        ours = _Gateway(server)
        paths = {name: f"/ipfs/{ours.upload(files / name)}" for name in sizes}
        theirs = _client(caddy)
        with ours.client as mine, theirs:
            rate = _rate(str(mine.base_url), paths["small"], dict(mine.headers))
            caddy_rate = _rate(caddy, "/small", {})
            speed, caddy_speed = _speed(mine, paths["big"]), _speed(theirs, "/big")
            first, far = (_first_byte(mine, paths[name]) for name in ("small", "huge"))
    return [
        Row("gateway: GETs of 4 KiB, verified", rate, "/s", "Caddy's file server", caddy_rate, "reported"),
        Row("gateway: GET of 100 MiB, verified", speed, "MB/s", "Caddy's file server", caddy_speed, "reported"),
        Row("gateway: the last byte of 1 GiB, p50", far, "ms", "of a file of 4 KiB", first, "does not grow with size"),
    ]


class _Gateway:
    """A server's first gateway, and the way to have something there."""

    def __init__(self, server: Up) -> None:
        self._api = server.client()
        port = server.url.rpartition(":")[2]
        self._uploads = {"Host": f"uploads.localhost:{port}"}
        rows = self._api.get("/v3/gateways", headers={"Host": f"api.localhost:{port}"}).raise_for_status().json()
        name = rows["data"]["rows"][0]["domain"]
        self.client = _client(server.url, {"Host": f"{name}.gateways.localhost:{port}"})

    def upload(self, path: Path) -> str:
        with path.open("rb") as content:
            answer = self._api.post(
                "/v3/files", headers=self._uploads, data={"network": "public"}, files={"file": (path.name, content)}
            )
        return answer.raise_for_status().json()["data"]["cid"]


def _client(url: str, headers: dict[str, str] | None = None) -> httpx.Client:
    return httpx.Client(base_url=url, headers=headers, timeout=60, trust_env=False)


def _fill(path: Path, size: int) -> None:
    piece = os.urandom(min(size, 1024**2))
    with path.open("wb") as file:
        for _ in range(size // len(piece)):
            file.write(piece)


def _rate(url: str, path: str, headers: dict[str, str]) -> float:
    """Answers in a second, some connections being busy."""

    async def work() -> float:
        limits = httpx.Limits(max_connections=_CONNECTIONS)
        async with httpx.AsyncClient(base_url=url, headers=headers, limits=limits, trust_env=False) as client:
            left = iter(range(_GETS))

            async def ask() -> None:
                for _ in left:
                    (await client.get(path)).raise_for_status()

            began = time.perf_counter()
            await asyncio.gather(*(ask() for _ in range(_CONNECTIONS)))
            return _GETS / (time.perf_counter() - began)

    return asyncio.run(work())


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
def _caddy(folder: Path) -> Iterator[str]:
    with listen("127.0.0.1", 0) as free:
        port = free.getsockname()[1]
    ours = Path(sys.executable).with_name("caddy")
    program = str(ours) if ours.exists() else shutil.which("caddy")
    if program is None:
        raise FileNotFoundError("caddy: install the benchmarks' requirements")
    home = {"HOME": str(folder), "XDG_DATA_HOME": str(folder), "XDG_CONFIG_HOME": str(folder)}
    arguments = [program, "file-server", "--listen", f"127.0.0.1:{port}", "--root", str(folder)]
    quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(arguments, env={**os.environ, **home}, **quiet) as process:
        try:
            url = f"http://127.0.0.1:{port}"
            with _client(url) as client:
                until(lambda: _answers(client))
            yield url
        finally:
            process.terminate()


def _answers(client: httpx.Client) -> bool:
    try:
        return client.get("/small").status_code == 200
    except httpx.HTTPError:
        return False
