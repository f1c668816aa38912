"""The servers that the benchmark of the edge compares, each in processes of its own on loopback.

An upstream, and in front of it the edge, nginx with `auth_request` or Caddy with forward-auth. The edge checks the
token itself; nginx and Caddy ask an auth server on uvicorn, which checks it in the same way.
"""

import asyncio
import contextlib
import hashlib
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import uvicorn
import uvloop

from bench.processes import caddy_environment, fetch_nginx, find_caddy, free_port, run_process
from roost.core.machine.interpreter import freeze_heap
from roost.core.sensitive import Sensitive
from roost.http.edge.dependencies import ProxyDependencies
from roost.http.edge.protocol import edge_protocol
from roost.http.server.server import raise_descriptor_limit
from roost.http.stack.address import HostAddresses
from roost.http.storage_gateway.response_cache import ResponseCache
from roost.identity.auth_request import AuthRequest
from roost.identity.authenticator import find_credential
from roost.identity.caller import Caller, CallerKind
from roost.identity.errors import Unauthorised
from roost.web.url_rule import HostAddress, HostKind

AGENTS = 8
NGINX, CADDY = "nginx with auth_request", "Caddy with forward-auth"
BIG = 64 * 1024**2
_PIECE = bytes(64 * 1024)
_REPLY = (
    b"HTTP/1.1 200 OK\r\nserver: upstream\r\ndate: Thu, 01 Jan 2026 00:00:00 GMT\r\ncontent-type: text/plain\r\n"
    b"set-cookie: a=1; Path=/\r\nset-cookie: b=2; Path=/\r\ncontent-length: 5\r\n\r\nhello"
)
_BIG_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/octet-stream\r\ncontent-length: %d\r\n\r\n" % BIG
_SWITCH = (
    b"HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\nupgrade: websocket\r\n"
    b"sec-websocket-accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n"  # of the example key of RFC 6455
)
_NGINX = """
daemon off;
master_process off;
worker_rlimit_nofile 16384;
error_log /dev/null;
pid {folder}/nginx.pid;
events {{ worker_connections 8192; }}
http {{
  access_log off;
  client_body_temp_path {folder}; proxy_temp_path {folder}; fastcgi_temp_path {folder};
  uwsgi_temp_path {folder}; scgi_temp_path {folder};
  keepalive_requests 1000000;
  upstream gateway {{ server 127.0.0.1:{upstream}; keepalive 64; keepalive_requests 1000000; }}
  upstream auth {{ server 127.0.0.1:{auth}; keepalive 64; keepalive_requests 1000000; }}
  map $http_upgrade $connection_upgrade {{ default upgrade; "" ""; }}
  proxy_http_version 1.1;
  proxy_set_header Upgrade $http_upgrade;
  proxy_set_header Connection $connection_upgrade;
  proxy_set_header Host $http_host;
  server {{
    listen 127.0.0.1:{port};
    location / {{ auth_request /auth; proxy_pass http://gateway; }}
    location = /auth {{
      internal;
      proxy_pass http://auth;
      proxy_pass_request_body off;
      proxy_set_header Connection "";
      proxy_set_header Content-Length "";
      proxy_set_header X-Forwarded-Host $host;
    }}
  }}
}}
"""


@dataclass(frozen=True)
class Proxy:
    """A running server with the port that clients use; `pids` are all processes that a request keeps busy."""

    port: int
    pids: Sequence[int]


StartProxy = Callable[[Path, int, int], contextlib.AbstractContextManager[Proxy]]
"""Starts a proxy: the folder for its files, the port of the upstream, and the CPU that it has to itself."""


def request_head(path: str, agent: int = 0, *lines: str) -> bytes:
    """Return the head of an authenticated request to an agent."""
    own = (f"Host: {_agent_id(agent)}.agents.localhost", f"Authorization: Bearer {_token(agent)}", "User-Agent: bench")
    return "\r\n".join((f"GET {path} HTTP/1.1", *own, "Accept: */*", *lines, "\r\n")).encode()


@contextlib.contextmanager
def run_upstream(cpu: int) -> Iterator[Proxy]:
    port = free_port()
    with _serving("upstream", cpu, port) as pid:
        yield Proxy(port, (pid,))


@contextlib.contextmanager
def run_edge(_folder: Path, upstream: int, cpu: int) -> Iterator[Proxy]:
    port = free_port()
    with _serving("edge", cpu, port, upstream) as pid:
        yield Proxy(port, (pid,))


@contextlib.contextmanager
def run_relay(_folder: Path, upstream: int, cpu: int) -> Iterator[Proxy]:
    port = free_port()
    with _serving("relay", cpu, port, upstream) as pid:
        yield Proxy(port, (pid,))


@contextlib.contextmanager
def run_nginx(folder: Path, upstream: int, cpu: int) -> Iterator[Proxy]:
    port, auth = free_port(), free_port()
    config = folder / "nginx.conf"
    config.write_text(_NGINX.format(folder=folder, port=port, auth=auth, upstream=upstream))
    argv = [fetch_nginx() or "", "-c", str(config)]
    with _serving("auth", cpu, auth) as auth_pid, run_process(argv, port, cpu=cpu) as pid:
        yield Proxy(port, (pid, auth_pid))


@contextlib.contextmanager
def run_caddy(folder: Path, upstream: int, cpu: int) -> Iterator[Proxy]:
    port, auth = free_port(), free_port()
    config = folder / "caddy.json"
    config.write_text(json.dumps(_caddy_config(port, auth, upstream)))
    argv = [find_caddy(), "run", "--config", str(config)]
    with (
        _serving("auth", cpu, auth) as auth_pid,
        run_process(argv, port, caddy_environment(folder), cpu=cpu) as pid,
    ):
        yield Proxy(port, (pid, auth_pid))


def find_proxies() -> Mapping[str, StartProxy]:
    """Return the proxies that the edge is compared with; nginx unless it cannot be had."""
    caddy: Mapping[str, StartProxy] = {CADDY: run_caddy}
    return {NGINX: run_nginx, **caddy} if fetch_nginx() else caddy


def _serving(server: str, cpu: int, *ports: int) -> contextlib.AbstractContextManager[int]:
    return run_process([sys.executable, "-m", "bench.proxies", server, *map(str, ports)], ports[0], cpu=cpu)


def _caddy_config(port: int, auth: int, upstream: int) -> dict[str, Any]:
    authenticate: dict[str, Any] = {
        "handler": "reverse_proxy",
        "upstreams": [{"dial": f"127.0.0.1:{auth}"}],
        "rewrite": {"method": "GET", "uri": "/auth"},
        "headers": {
            "request": {
                "set": {
                    "X-Forwarded-Method": ["{http.request.method}"],
                    "X-Forwarded-Uri": ["{http.request.uri}"],
                },
                "delete": ["Connection", "Upgrade", "Sec-Websocket-*"],  # the auth server would switch protocols
            }
        },
        "handle_response": [{"match": {"status_code": [2]}, "routes": [{"handle": [{"handler": "vars"}]}]}],
    }
    forward = {
        "handler": "reverse_proxy",
        "upstreams": [{"dial": f"127.0.0.1:{upstream}"}],
        "transport": {"protocol": "http", "keep_alive": {"max_idle_conns_per_host": 64}},
    }
    server = {
        "listen": [f"127.0.0.1:{port}"],
        "automatic_https": {"disable": True},
        "routes": [{"handle": [authenticate, forward]}],
    }
    return {
        "admin": {"disabled": True},
        "logging": {"logs": {"default": {"level": "ERROR"}}},
        "apps": {"http": {"servers": {"main": server}}},
    }


# In the processes of the servers


class _Upstream(asyncio.Protocol):
    """Server with one reply to each request head, one large reply, and WebSockets whose bytes it echoes."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport: Any = transport
        self._unread, self._left = b"", 0
        self._is_websocket = self._is_full = False

    def data_received(self, data: bytes) -> None:
        if self._is_websocket:
            self._transport.write(data)
            return
        *heads, self._unread = (self._unread + data).split(b"\r\n\r\n")
        for head in heads:
            if head.startswith(b"GET /big "):
                self._left = BIG
                self._transport.write(_BIG_HEAD)
                self._write_more()
            elif b"\r\nupgrade: websocket" in head.lower():
                self._is_websocket = True
                self._transport.write(_SWITCH)
            else:
                self._transport.write(_REPLY)

    def pause_writing(self) -> None:
        self._is_full = True

    def resume_writing(self) -> None:
        self._is_full = False
        self._write_more()

    def _write_more(self) -> None:
        while self._left and not self._is_full:
            self._left -= len(_PIECE)
            self._transport.write(_PIECE)


async def _serve_upstream(port: int) -> None:
    server = await asyncio.get_running_loop().create_server(_Upstream, "127.0.0.1", port, backlog=1024)
    await server.serve_forever()


class _Relay(asyncio.Protocol):
    """One side of a connection that hands bytes on without looking at them; `upstream` is 0 on the upstream's side."""

    def __init__(self, upstream: int, peer: "_Relay | None" = None) -> None:
        self._upstream, self.peer, self.unsent = upstream, peer, b""
        self.transport: Any = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        if self.peer is None:
            self._dialling = asyncio.create_task(self._dial())
        else:
            self.peer.peer = self
            self.transport.write(self.peer.unsent)

    def data_received(self, data: bytes) -> None:
        if self.peer is None:
            self.unsent += data
        else:
            self.peer.transport.write(data)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - whatever ended it
        if self.peer is not None:
            self.peer.transport.close()

    async def _dial(self) -> None:
        await asyncio.get_running_loop().create_connection(lambda: _Relay(0, self), "127.0.0.1", self._upstream)


async def _serve_relay(port: int, upstream: int) -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: _Relay(upstream), "127.0.0.1", port, backlog=1024)
    await server.serve_forever()


def _agent_id(agent: int) -> str:
    return f"agent{agent}"


def _token(agent: int) -> str:
    return "rst_gw_" + f"{agent:02x}" * 32


def _caller(agent: int) -> Caller:
    digest = hashlib.sha256(_token(agent).encode()).digest()
    return Caller(CallerKind.GATEWAY, "tenant", _agent_id(agent), token_digest=digest)


_CALLERS = {caller.token_digest: caller for caller in map(_caller, range(AGENTS))}


def _recall(entry: AuthRequest) -> Caller | None:
    credential = find_credential(entry.headers, entry.query)
    digest = hashlib.sha256(credential.token.encode()).digest() if credential else b""
    caller = _CALLERS.get(digest)
    return caller if caller is not None and caller.agent_id == entry.host.agent_id else None


async def _check(entry: AuthRequest) -> Caller:
    if (caller := _recall(entry)) is None:
        raise Unauthorised
    return caller


async def _auth_app(scope: dict[str, Any], _receive: Any, send: Any) -> None:
    """Answer the auth subrequest of Caddy and nginx."""
    headers = {name.decode(): value.decode() for name, value in scope["headers"]}
    agent = headers.get("x-forwarded-host", "").partition(".")[0]
    status = 200
    try:
        await _check(AuthRequest(HostAddress(HostKind.AGENT, "", agent), "GET", headers, "", ""))
    except Unauthorised:
        status = 401
    await send({"type": "http.response.start", "status": status, "headers": [(b"content-length", b"0")]})
    await send({"type": "http.response.body", "body": b""})


def _serve_auth(port: int) -> None:
    uvicorn.run(_auth_app, port=port, log_config=None, access_log=False, lifespan="off", ws="none")


def _serve_edge(port: int, upstream: int) -> None:
    async def dial(_agent_id: str, _port: int | None) -> Any:
        return await asyncio.open_connection("127.0.0.1", upstream)

    async def credential(_agent_id: str) -> tuple[str, Sensitive[str]]:
        return "Authorization", Sensitive("Bearer internal")

    dependencies = ProxyDependencies(
        addresses=HostAddresses("localhost", port),
        recall=_recall,
        admit=_check,
        find_route=lambda _agent_id, _path: None,
        dial=dial,
        credential=credential,
        record_use=lambda _agent_id: None,
        subscribe=lambda _listener: None,
        subscribe_routes=lambda _listener: None,
        observe=lambda _record: None,
        cache=ResponseCache(lambda: 0),
    )
    freeze_heap()  # as `roost up` does
    uvicorn.run(
        _auth_app, http=edge_protocol(dependencies), ws="websockets-sansio", port=port, log_config=None, lifespan="off"
    )


def _main(server: str, *ports: str) -> None:
    """Run one of the servers, when this module is the program."""
    raise_descriptor_limit()
    numbers = [int(port) for port in ports]
    if server == "upstream":
        uvloop.run(_serve_upstream(*numbers))
    elif server == "relay":
        uvloop.run(_serve_relay(*numbers))
    elif server == "auth":
        _serve_auth(*numbers)
    else:
        _serve_edge(*numbers)


if __name__ == "__main__":
    _main(*sys.argv[1:])
