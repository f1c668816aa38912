"""The fake gateway as a program on the host."""

import json
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from websockets.sync.client import connect

from roost.drivers.engine.fake import gateway as fake_gateway

TOKEN = "internal-token"


def start(folder: Path, name: str) -> tuple[subprocess.Popen[bytes], int]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings = {
        "version": "1.0.0",
        "name": name,
        "port": port,
        "token": TOKEN,
        "model_url": "http://127.0.0.1:9/v1",
        "channels": {},
    }
    (folder / "settings.json").write_text(json.dumps({**settings, "model": "m"}))
    for name in ("gateway", "scheduler", "admin_api", "conversations"):
        program = Path(fake_gateway.__file__).with_name(f"{name}.py")
        (folder / f"{name}.py").write_bytes(program.read_bytes())
    command = [sys.executable, "-I", str(folder / "gateway.py"), str(folder / "settings.json")]
    return subprocess.Popen(command, stderr=subprocess.PIPE), port


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    process, port = start(tmp_path_factory.mktemp("fake"), "one")
    with process:
        assert process.stderr is not None
        while process.stderr.readline() != b"fake gateway listens\n":
            assert process.poll() is None
        yield f"http://127.0.0.1:{port}"
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 0


def fetch(url: str, token: str = TOKEN, **options: Any) -> tuple[int, bytes]:
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {token}"}, **options)
    try:
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=10) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


def test_all_paths_but_health_need_the_token(url: str) -> None:
    assert fetch(f"{url}/health", "wrong") == (200, b'{"status": "ok"}')
    for path in ("/v1/models", "/echo", "/nowhere", "/health/detailed"):
        assert fetch(f"{url}{path}", "wrong")[0] == 401
    assert fetch(f"{url}/health/detailed") == (200, b'{"version": "1.0.0"}')
    assert fetch(f"{url}/nowhere")[0] == 404


def test_echo_shows_the_request_as_it_came(url: str) -> None:
    status, body = fetch(f"{url}/echo?a=1", method="DELETE", data=b"body")
    shown = json.loads(body)
    assert (status, shown["method"], shown["path"], shown["body"]) == (200, "DELETE", "/echo?a=1", "body")
    assert ["Authorization", f"Bearer {TOKEN}"] in shown["headers"]


def test_slow_and_big_answers(url: str) -> None:
    begin = time.monotonic()
    assert fetch(f"{url}/slow?count=3&every=0.05") == (200, b"0\n1\n2\n")
    assert time.monotonic() - begin >= 0.15
    assert fetch(f"{url}/big?n=300000") == (200, bytes(300000))


def test_a_chat_without_a_model_gateway_is_a_502(url: str) -> None:
    assert fetch(f"{url}/v1/chat/completions", data=b'{"messages": []}')[0] == 502


@pytest.mark.parametrize("message", ["short", "x" * 1000, "y" * 100_000, b"\0\1", "ü"])
def test_the_websocket_echoes(url: str, message: str | bytes) -> None:
    header = {"Authorization": f"Bearer {TOKEN}"}
    with connect(f"{url.replace('http', 'ws')}/ws", additional_headers=header, proxy=None) as socket:
        socket.send(message)
        assert socket.recv(timeout=10) == message
        assert socket.ping().wait(10)


def test_the_name_fail_start_makes_it_fail(tmp_path: Path) -> None:
    process, _port = start(tmp_path, "fail-start")
    _out, log = process.communicate(timeout=10)
    assert process.returncode == 3
    assert log.decode().splitlines() == ["fake gateway 1.0.0 starts", "fake gateway was told to fail"]


def test_the_name_never_ready_makes_it_silent_and_it_still_stops(tmp_path: Path) -> None:
    process, port = start(tmp_path, "never-ready")
    with process:
        assert process.stderr is not None
        assert process.stderr.readline() == b"fake gateway 1.0.0 starts\n"
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port), timeout=1)
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 0
