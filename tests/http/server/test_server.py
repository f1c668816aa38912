"""Listening, the one server of a data folder, health for machines."""

import asyncio
import gc
import os
import re
import signal
import socket
import subprocess
import sys
import weakref
from collections.abc import Mapping
from pathlib import Path

import httpx2 as httpx
import pytest
from fastapi import FastAPI
from prometheus_client import CollectorRegistry

from roost.app import server as composition
from roost.http.server import health
from roost.http.server.server import (
    CannotListen,
    ServerAlreadyRunning,
    StopRequest,
    lock_data_folder,
    open_listener,
    open_tls_listeners,
    stop_on_signals,
)
from roost.web.service_registry import ServiceRegistry
from tests.support.server import running


def test_a_taken_port_is_said_plainly() -> None:
    with (
        open_listener("127.0.0.1", 0) as taken,
        pytest.raises(CannotListen, match="Choose another with --port or ROOST_PORT"),
    ):
        open_listener("127.0.0.1", taken.getsockname()[1])


def test_a_taken_port_for_https_is_said_plainly() -> None:
    with open_listener("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        for ports, setting in (((port, 0), "tls_port"), ((0, port), "tls_http_port")):
            with pytest.raises(CannotListen, match=f"Cannot listen on 127.0.0.1 port {port}: .* set {setting} .*_BIND"):
                open_tls_listeners("127.0.0.1", *ports)


def test_all_addresses_are_those_of_both_families() -> None:
    listeners = open_tls_listeners("::", 0, 0)
    for address in ("127.0.0.1", "::1"):
        socket.create_connection((address, listeners.port), timeout=1).close()
    assert listeners.quic.getsockname()[1] == listeners.port
    listeners.close()


def test_listening_works_for_both_families() -> None:
    with open_listener("127.0.0.1", 0) as four, open_listener("::1", 0) as six:
        assert (four.family, six.family) == (socket.AF_INET, socket.AF_INET6)


def test_a_data_folder_has_one_server_at_a_time(tmp_path: Path) -> None:
    with (
        lock_data_folder(tmp_path),
        pytest.raises(ServerAlreadyRunning, match=str(tmp_path)),
        lock_data_folder(tmp_path),
    ):
        raise AssertionError("two at once")
    with lock_data_folder(tmp_path):
        pass


async def test_health_readiness_and_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with running(tmp_path / "data", ROOST_METRICS_TOKEN="m" * 16) as server:
        management, local = server.client(), server.client(host="localhost")
        assert (await management.get("/healthz")).json() == {"status": "ok"}
        ready = await management.get("/readyz")
        assert (ready.status_code, ready.json()["checks"]) == (
            200,
            {"containers": "ok", "database": "ok", "disk": "ok", "storage": "ok"},
        )
        with monkeypatch.context() as full:
            full.setattr(composition, "READY_RESERVE", 1 << 62)
            answer = await management.get("/readyz")
        assert (answer.status_code, answer.json()["checks"]["disk"]) == (503, "failing")
        (tmp_path / "data" / "blobs").rename(tmp_path / "elsewhere")
        gone = await management.get("/readyz")
        assert (gone.status_code, gone.json()["checks"]["storage"]) == (503, "failing")
        (tmp_path / "elsewhere").rename(tmp_path / "data" / "blobs")
        numbers = await server.client("m" * 16).get("/metrics")
        for name in ("roost_requests_total", "roost_damaged_packs", "roost_stored_bytes", "roost_unheld_bytes"):
            assert f"\n{name}" in numbers.text
        for client in (management, local, server.client("n" * 16)):
            assert (await client.get("/metrics")).status_code == 401
        assert (await local.get("/openapi")).json()["info"]["title"] == "Roost"


async def test_a_stopped_server_leaves_nothing_in_memory(tmp_path: Path) -> None:
    async with running(tmp_path / "data") as server:
        assert (await server.client(server.key()).get("/v0/agents")).status_code == 200
        roost = weakref.ref(server.roost)
    del server
    await asyncio.sleep(0)  # callbacks of closed connections
    gc.collect()
    assert roost() is None, "a cache or a global refers to it, and a process with many servers grows"


def health_application(checks: Mapping[str, health.Check], deadline: float = 5.0) -> FastAPI:
    app = FastAPI()
    app.include_router(health.router)
    app.state.services = ServiceRegistry()
    app.state.services.add(health.ServerHealth(checks, CollectorRegistry(), deadline=deadline))
    return app


async def test_readiness_names_the_part_that_fails() -> None:
    async def works() -> None: ...

    async def fails() -> None:
        raise OSError("gone")

    app = health_application({"good": works, "bad": fails})
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://x") as client:
        answer = await client.get("/readyz")
    assert (answer.status_code, answer.json()["checks"]) == (503, {"good": "ok", "bad": "failing"})


async def test_a_part_that_hangs_is_failing() -> None:
    async def hangs() -> None:
        await asyncio.Event().wait()

    app = health_application({"slow": hangs}, deadline=0.05)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://x") as client:
        answer = await client.get("/readyz")
    assert (answer.status_code, answer.json()["checks"]) == (503, {"slow": "failing"})


async def test_parts_are_checked_at_the_same_time() -> None:
    both = asyncio.Barrier(2)

    async def waits() -> None:
        await both.wait()

    app = health_application({"one": waits, "two": waits}, deadline=1.0)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://x") as client:
        answer = await client.get("/readyz")
    assert (answer.status_code, answer.json()["checks"]) == (200, {"one": "ok", "two": "ok"})


async def test_small_answers_do_not_wait_for_each_other() -> None:
    """Nagle's algorithm is off on what is accepted, under the standard loop too."""
    accepted: asyncio.Queue[asyncio.StreamWriter] = asyncio.Queue()
    with open_listener("127.0.0.1", 0) as listener:
        async with await asyncio.start_server(lambda _, writer: accepted.put_nowait(writer), sock=listener):
            _, client = await asyncio.open_connection(*listener.getsockname())
            writer = await accepted.get()
            assert writer.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
            writer.close()
            client.close()


@pytest.mark.parametrize(("number", "stops"), [(signal.SIGINT, True), (signal.SIGTERM, True), (signal.SIGHUP, False)])
async def test_signals_that_a_shell_ignores(number: signal.Signals, stops: bool) -> None:
    """A script's background processes ignore SIGINT, and those of `nohup` SIGHUP."""
    before = {one: signal.signal(one, signal.SIG_IGN) for one in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    loop, stop = asyncio.get_running_loop(), StopRequest()
    try:
        stop_on_signals(stop)
        os.kill(os.getpid(), number)
        await asyncio.sleep(0)
        if stops:
            async with asyncio.timeout(10):
                await stop.wait()
        assert stop.is_set() == stops
    finally:
        for one, handler in before.items():
            loop.remove_signal_handler(one)
            signal.signal(one, handler)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a capability away")
def test_programs_do_not_get_the_right_to_bind_low_ports() -> None:
    program = (
        "import subprocess; from roost.http.server.server import clear_ambient_capabilities, open_listener\n"
        "clear_ambient_capabilities(); open_listener('127.0.0.1', 0).close()\n"
        "subprocess.run(['grep', '-E', 'Cap(Prm|Amb)', '/proc/self/status'], check=True)"
    )
    given = ("--inh-caps=+net_bind_service", "--ambient-caps=+net_bind_service", "--reuid=1000", "--regid=1000")
    command = ["setpriv", *given, "--clear-groups", sys.executable, "-c"]
    if subprocess.run([*command, "import roost.http.server.server"], check=False, capture_output=True).returncode:
        pytest.skip("this Python is closed to other users")
    done = subprocess.run([*command, program], capture_output=True, text=True, check=False)
    assert re.findall(r"Cap\w+:\s+0+$", done.stdout, re.MULTILINE) == done.stdout.splitlines() != [], done.stderr
