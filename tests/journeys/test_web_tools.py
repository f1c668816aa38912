"""An agent's own tool fetches a page: through the engine's guard, the container, the egress policy, and back."""

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.journeys.server_process import ServerProcess, up

pytestmark = [pytest.mark.engine, pytest.mark.timeout(300)]

PHRASE = "The tawny owl hunts at dusk."
PAGE = f"<html><body><article><p>{PHRASE}</p></article></body></html>".encode()


@pytest.fixture
def name() -> str:
    """Return this machine's host name, the only local name that the guard takes for a foreign one."""
    found = socket.gethostname().lower()
    if found.startswith("localhost") or found.endswith((".local", ".internal", ".localhost")):
        pytest.skip(f"guards refuse the name {found} by itself")
    return found


@pytest.fixture
def addresses(name: str) -> list[str]:
    try:
        found = socket.getaddrinfo(name, 0, type=socket.SOCK_STREAM)
    except OSError:
        pytest.skip(f"nothing here resolves {name}")
    # IPv4 first, because the site listens there.
    told = {str(address[0]).partition("%")[0]: family for family, *_, address in found}
    if socket.AF_INET not in told.values():
        pytest.skip(f"{name} has no IPv4 address")
    return sorted(told, key=lambda address: told[address] != socket.AF_INET)


@contextmanager
def site(address: str) -> Iterator[tuple[int, list[str]]]:
    """Run a web server; yield its port, and the hosts and paths of its requests."""
    asked: list[str] = []

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(f"{self.headers['Host']}{self.path}")
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(PAGE)))
            self.end_headers()
            self.wfile.write(PAGE)

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    with ThreadingHTTPServer((address, 0), Page) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port, asked
        server.shutdown()


def fetch(server: ServerProcess, agent_id: str, url: str) -> str:
    """Return the tool's answer as the agent reports it. Tools that are not loaded are called by `tool_call`."""
    order = json.dumps({"id": "web_fetch", "args": {"url": url, "extractMode": "text"}})
    said = server.roost("chat", agent_id, f"/tool tool_call {order}")
    assert said.returncode == 0, said.stderr
    return said.stdout


def test_openclaw_fetches_what_the_policy_lets_through(tmp_path: Path, name: str, addresses: list[str]) -> None:
    options = {"ROOST_EGRESS_ALLOW": ",".join(addresses)}
    with site(addresses[0]) as (port, asked), up(tmp_path / "data", "--no-first-agent", **options) as server:
        agent = server.create("A reader", "openclaw")["agentId"]
        said = fetch(server, agent, f"http://{name}:{port}/owl")
        assert 'status\\": 200' in said, said
        assert asked == [f"{name}:{port}/owl"]
        # The engine stores the tools' answers; the chat shows only the beginning.
        kept = server.roost("agents", "exec", agent, "--", "grep", "-rlaF", PHRASE, "/home/agent/.openclaw/agents")
        assert kept.stdout, said

        # The container's placeholder addresses exist in the container only.
        assert "403" in fetch(server, agent, "http://28.77.0.1/owl")
        # The engine's own guard still protects its own gateway and ours.
        for local in (f"127.0.0.1:{port}", "127.0.0.1:8799", "localhost:18789", "169.254.169.254"):
            assert "Blocked hostname" in fetch(server, agent, f"http://{local}/owl")
        assert len(asked) == 1
