"""An ACME server and its DNS on loopback, Pebble from Debian's packages, and curl with HTTP/3 as the client.

Names of any domain resolve to 127.0.0.1 there. Pebble validates at the ports for HTTP and TLS that it is given.
"""

import asyncio
import json
import socket
import ssl
import subprocess
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.platforms.tls import Authority
from tests.support.debian_root import debian_command

PACKAGES = ["curl", "nginx-light", "pebble"]
_DEADLINE = 20.0


@dataclass(frozen=True)
class AcmeServer:
    """http_port, tls_port: where it validates. ca: authorities of its own address and of what it issues."""

    folder: Path
    url: str
    ca: Path
    http_port: int
    tls_port: int
    dns_port: int
    _management: str

    @property
    def settings(self) -> dict[str, Any]:
        """The settings of a server that gets its certificates here."""
        return {
            "ROOST_TLS": "true",
            "ROOST_TLS_HOST": "127.0.0.1",
            "ROOST_TLS_PORT": str(self.tls_port),
            "ROOST_TLS_HTTP_PORT": str(self.http_port),
            "ROOST_ACME_URL": self.url,
            "ROOST_ACME_CA": str(self.ca),
        }

    def set_text(self, name: str, value: str) -> None:
        self._manage("set-txt", {"host": f"{name}.", "value": value})

    def set_address(self, name: str, address: str) -> None:
        self._manage("add-a", {"host": name, "addresses": [address]})

    def clear_address(self, name: str) -> None:
        self._manage("clear-a", {"host": name})

    def count_orders(self) -> int:
        """Return how many certificates were asked for."""
        return (self.folder / "pebble.log").read_text().count("POST /order-plz")

    def _manage(self, action: str, body: object) -> None:
        request = urllib.request.Request(f"{self._management}/{action}", json.dumps(body).encode())
        with urllib.request.urlopen(request, timeout=5):
            pass


@contextmanager
def acme_server(folder: Path) -> Iterator[AcmeServer]:
    """Raises PackagesNotFetched."""
    listen, management, http, tls, dns, control = find_free_ports(6)
    authority = Authority("pebble")
    (folder / "server.pem").write_bytes(authority.issue("localhost"))
    content = {
        "listenAddress": f"127.0.0.1:{listen}",
        "managementListenAddress": f"127.0.0.1:{management}",
        "certificate": str(folder / "server.pem"),
        "privateKey": str(folder / "server.pem"),
        "httpPort": http,
        "tlsPort": tls,
        "profiles": {"default": {"description": "default", "validityPeriod": 7 * 24 * 3600}},
    }
    (folder / "pebble.json").write_text(json.dumps({"pebble": content}))
    dns_flags = {"dnsserver": f"127.0.0.1:{dns}", "management": f"127.0.0.1:{control}", "defaultIPv4": "127.0.0.1"}
    unused = dict.fromkeys(("defaultIPv6", "http01", "https01", "tlsalpn01", "doh"), "")
    challenges = [part for name, value in {**dns_flags, **unused}.items() for part in (f"-{name}", value)]
    pebble = ["-config", str(folder / "pebble.json"), "-dnsserver", f"127.0.0.1:{dns}"]
    with ExitStack() as stack:
        stack.enter_context(_run_package("pebble-challtestsrv", challenges, folder, control))
        stack.enter_context(_run_package("pebble", pebble, folder, listen))
        root = _download_root(f"https://localhost:{management}/roots/0", authority.certificate)
        (folder / "ca.pem").write_bytes(authority.certificate + root)
        url = f"https://localhost:{listen}/dir"
        yield AcmeServer(folder, url, folder / "ca.pem", http, tls, dns, f"http://127.0.0.1:{control}")


@dataclass(frozen=True)
class Reply:
    """A response as curl got it; `code` is curl's exit code, 35 for a handshake that failed."""

    code: int
    version: str
    status: int
    headers: dict[str, str]
    body: str


def curl(acme: AcmeServer, url: str, *options: str, port: int | None = None, timeout: float = 30) -> Reply:
    """Request `url`, whose name leads to 127.0.0.1 and whose port to `port`, by default that for TLS."""
    name = url.partition("://")[2].partition("/")[0].partition(":")[0]
    target = str(port or acme.tls_port)
    command = debian_command("bin/curl", PACKAGES, acme.folder)
    scheme_port = "80" if url.startswith("http:") else "443"
    fixed = ["-sS", "-i", "--cacert", str(acme.ca), "--max-time", str(timeout)]
    address = ["--connect-to", f"{name}:{scheme_port}:127.0.0.1:{target}"]
    done = subprocess.run(
        [*command, *fixed, *address, *options, url], capture_output=True, timeout=timeout + 10, check=False
    )
    head, _, body = _last_response(done.stdout)
    lines = head.decode().split("\r\n")
    if not lines[0]:
        return Reply(done.returncode, "", 0, {}, done.stderr.decode())
    version, status = lines[0].split()[:2]
    headers = {line.partition(":")[0].lower(): line.partition(":")[2].strip() for line in lines[1:]}
    return Reply(done.returncode, version, int(status), headers, body.decode())


def _last_response(output: bytes) -> tuple[bytes, bytes, bytes]:
    head, mark, rest = output.partition(b"\r\n\r\n")
    return _last_response(rest) if head.split(b" ")[1:2] == [b"100"] else (head, mark, rest)


async def connect(acme: AcmeServer, name: str, authority: bytes) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Open a TLS connection for a name, whose certificate `authority` signed."""
    context = ssl.create_default_context(cadata=authority.decode())
    return await asyncio.open_connection("127.0.0.1", acme.tls_port, ssl=context, server_hostname=name)


def _run_package(program: str, arguments: list[str], folder: Path, port: int) -> AbstractContextManager[None]:
    command = [*debian_command(f"bin/{program}", PACKAGES, folder), *arguments]
    return run_listener(command, folder / f"{program}.log", port, {"PEBBLE_VA_NOSLEEP": "1"})


@contextmanager
def run_listener(
    command: list[str], log: Path, port: int, environment: Mapping[str, str] | None = None
) -> Iterator[None]:
    """Run a program, from when it listens on its port."""
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, env=environment)
    try:
        wait_for_port(port)
        yield
    finally:
        process.terminate()
        process.wait(10)


def wait_for_port(port: int) -> None:
    end = time.monotonic() + _DEADLINE
    while True:
        try:
            return socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            assert time.monotonic() < end, f"nothing listens on port {port}"
            time.sleep(0.02)


def _download_root(url: str, authority: bytes) -> bytes:
    context = ssl.create_default_context(cadata=authority.decode())
    with urllib.request.urlopen(url, context=context, timeout=5) as answer:
        return answer.read()


def find_free_ports(count: int) -> list[int]:
    with ExitStack() as stack:
        return [stack.enter_context(socket.create_server(("127.0.0.1", 0))).getsockname()[1] for _ in range(count)]
