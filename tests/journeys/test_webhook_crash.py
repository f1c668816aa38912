"""A server that is killed while it sends webhooks: each event is delivered, and no other."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from tests.journeys.server_process import ServerProcess, until, up


class FakeReceiver:
    """Responses of the receiver by event and file; it waits while `held` is not set."""

    def __init__(self) -> None:
        self.port = 0
        self.held = threading.Event()
        self.held.set()
        self.waiting = 0
        self.events: list[tuple[str, str]] = []


@contextmanager
def receiver() -> Iterator[FakeReceiver]:
    told = FakeReceiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if not told.held.is_set():
                told.waiting += 1
                told.held.wait()
                return  # the client is gone
            told.events.append((body["event_type"], body["data"]["object"]["id"]))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    told.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield told
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_killed_between_a_change_and_its_message(tmp_path: Path) -> None:
    with receiver() as told, up(tmp_path / "data", ROOST_EGRESS_ALLOW="127.0.0.1/32") as server:
        with server.client() as client:
            made = client.post("/v3/webhooks", json={"url": f"http://127.0.0.1:{told.port}/"})
            assert made.status_code == 200, made.text
        files = [_upload(server, 0)]
        until(lambda: told.events)
        told.held.clear()  # responses from now on wait until after the crash
        files += [_upload(server, number) for number in range(1, 4)]
        until(lambda: told.waiting)
        with server.client() as client:
            assert client.delete(f"/v3/files/private/{files[0]}").status_code == 200
        server.kill()
        told.held.set()
        server.start()
        expected = {("ipfs.private.file_added", file) for file in files} | {("ipfs.private.file_deleted", files[0])}
        until(lambda: len(set(told.events)) >= len(expected))
    assert set(told.events) == expected


def _upload(server: ServerProcess, number: int) -> str:
    with server.client() as client:
        answer = client.post("/v3/files", files={"file": ("a.txt", f"file {number}".encode())})
        assert answer.status_code == 200, answer.text
        return answer.json()["data"]["id"]
