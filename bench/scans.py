"""Small requests of one tenant while another one searches and lists 100,000 files, compared with an idle server."""

import multiprocessing
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import quantiles

import httpx2 as httpx

from bench.row import Row
from bench.timing import take_turns
from roost import app, config
from roost.core import ids
from roost.core.db import Connection, insert_many
from roost.identity import tenants
from roost.identity.tenants import DEFAULT_TENANT
from roost.storage.files import store
from tests.journeys.server_process import ServerProcess, up

_FILES = 100_000
_REQUESTS = 200
_SCANS = ("name=none-has-it&limit=10", "limit=1000")
_LISTERS = 2
"""Connections for each scan."""


def run(folder: Path) -> Iterator[Row]:
    with up(folder / "data", "--no-first-agent") as server:
        _fill(folder / "data")
        with _client(server, _create_key(server)) as small:
            idle, busy = take_turns(lambda: _p99(small), lambda: _p99_beside_scans(server, small))
    yield Row(f"a small request beside scans of {_FILES:,} files, p99", busy, "ms", "idle server", idle, "<= 5 x")


def _fill(data: Path) -> None:
    db = app.open_database(config.load_settings({"ROOST_DATA": str(data)}))
    began = time.time_ns() // 1000

    def add(connection: Connection) -> None:
        file = {
            "tenant_id": tenants.ensure_tenant(connection, DEFAULT_TENANT).id,
            "network": "private",
            "size": 5,
            "number_of_files": 1,
            "mime_type": "text/plain",
            "keyvalues": '{"kind": "bench"}',
            "group_id": None,
            "expires_at": None,
            "deleted_at": None,
        }
        rows = [
            {**file, "id": ids.new_id(), "cid": f"bafy{number:055}", "name": f"file {number}.txt"}
            | dict.fromkeys(("created_at", "updated_at"), began + number)
            for number in range(_FILES)
        ]
        insert_many(connection, store.files, rows)

    db.run(add)
    db.close()


def _create_key(server: ServerProcess) -> str:
    """Return the key of another tenant."""
    made = server.roost("keys", "create", "--tenant", "other")
    assert made.returncode == 0, made.stderr
    return made.stdout.strip()


def _client(server: ServerProcess, key: str) -> httpx.Client:
    headers = {"Authorization": f"Bearer {key}", "Host": f"api.localhost:{httpx.URL(server.url).port}"}
    return httpx.Client(base_url=server.url, headers=headers, timeout=60, trust_env=False)


def _p99(client: httpx.Client) -> float:
    """Return the 99th percentile of the milliseconds of a small request."""
    times: list[float] = []
    for _ in range(_REQUESTS):
        began = time.perf_counter()
        client.get("/v3/files/private?limit=1").raise_for_status()
        times.append((time.perf_counter() - began) * 1000)
        time.sleep(0.005)  # a tenant that does not fill the server itself
    return quantiles(times, n=100)[98]


def _p99_beside_scans(server: ServerProcess, client: httpx.Client) -> float:
    with _scans(server):
        return _p99(client)


@contextmanager
def _scans(server: ServerProcess) -> Iterator[None]:
    """Repeat the scans in processes of their own, whose work does not count as the server's."""
    fork = multiprocessing.get_context("fork")
    scans = [fork.Process(target=_repeat, args=(server, scan), daemon=True) for scan in _SCANS for _ in range(_LISTERS)]
    for process in scans:
        process.start()
    try:
        yield
        assert all(process.is_alive() for process in scans), "a scan failed"
    finally:
        for process in scans:
            process.kill()
            process.join()


def _repeat(server: ServerProcess, scan: str) -> None:
    with _client(server, server.session["token"]) as client:
        while True:
            client.get(f"/v3/files/private?{scan}").raise_for_status()
