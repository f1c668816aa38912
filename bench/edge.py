"""CPU of a request through the agents' edge, compared with nginx with `auth_request` and Caddy with forward-auth.

Each server is a process on loopback: an upstream with a fixed reply, the edge (uvicorn with its protocol), and each
proxy with an auth server on uvicorn that checks the token in the same way. The client keeps 32 connections busy; the
figure is the CPU time of the serving processes divided by the number of requests.
"""

import asyncio
import contextlib
import hashlib
import hmac
import json
import math
import statistics
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import uvicorn
import uvloop

from bench.load import send_requests
from bench.processes import caddy_environment, cpu_seconds, find_caddy, find_nginx, free_port, run_process
from bench.table import Row
from roost.core.sensitive import Sensitive
from roost.hosts.address import HostAddresses
from roost.hosts.edge.dependencies import ProxyDependencies
from roost.hosts.edge.protocol import edge_protocol
from roost.hosts.response_cache import ResponseCache
from roost.identity.authenticator import AuthRequest, find_credential
from roost.identity.errors import Unauthorised
from roost.web.url_rule import HostKind

_TOKEN = "rst_gw_" + "5a" * 32
_DIGESTS = {hashlib.sha256(_TOKEN.encode()).digest(): "agent"}
_HOST = "agent.agents.localhost"
_REPLY = (
    b"HTTP/1.1 200 OK\r\nserver: upstream\r\ndate: Thu, 01 Jan 2026 00:00:00 GMT\r\ncontent-type: text/plain\r\n"
    b"set-cookie: a=1; Path=/\r\nset-cookie: b=2; Path=/\r\ncontent-length: 5\r\n\r\nhello"
)
_NGINX = """
daemon off;
master_process off;
error_log /dev/null;
pid {folder}/nginx.pid;
events {{ worker_connections 1024; }}
http {{
  access_log off;
  client_body_temp_path {folder}; proxy_temp_path {folder}; fastcgi_temp_path {folder};
  uwsgi_temp_path {folder}; scgi_temp_path {folder};
  keepalive_requests 1000000;
  upstream gateway {{ server 127.0.0.1:{upstream}; keepalive 64; keepalive_requests 1000000; }}
  upstream auth {{ server 127.0.0.1:{auth}; keepalive 64; keepalive_requests 1000000; }}
  proxy_http_version 1.1;
  proxy_set_header Connection "";
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
_CONNECTIONS = 32
_REQUESTS = 20_000
_ROUNDS = 3


def run(folder: Path) -> Sequence[Row]:
    with contextlib.ExitStack() as stack:
        upstream = free_port()
        stack.enter_context(_serving("upstream", upstream))
        edge_port, edge = stack.enter_context(_edge(upstream))
        peers = {"Caddy with forward-auth": stack.enter_context(_caddy(folder, upstream))}
        if find_nginx() is not None:
            peers["nginx with auth_request"] = stack.enter_context(_nginx(folder, upstream))
        edges: list[float] = []
        figures: dict[str, list[float]] = {name: [] for name in peers}
        for _ in range(_ROUNDS):
            edges.append(_cpu_per_request(edge_port, edge))
            for name, (port, pids) in peers.items():
                figures[name].append(_cpu_per_request(port, pids))
    references = {name: statistics.median(values) for name, values in figures.items()}
    if find_nginx() is None:
        references["nginx with auth_request: not installed"] = math.nan
    title = f"request to an agent's port, CPU, {_CONNECTIONS} connections"
    own = statistics.median(edges)
    return [Row(title, own, "us", name, value, "below the reference") for name, value in references.items()]


# The servers, each in its own process


class _Upstream(asyncio.Protocol):
    """Server that answers each request head with the same reply."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport: Any = transport
        self._unread = b""

    def data_received(self, data: bytes) -> None:
        heads = (self._unread + data).split(b"\r\n\r\n")
        self._unread = heads[-1]
        self._transport.write(_REPLY * (len(heads) - 1))


async def _serve_upstream(port: int) -> None:
    server = await asyncio.get_running_loop().create_server(_Upstream, "127.0.0.1", port)
    await server.serve_forever()


def _is_valid(entry: AuthRequest) -> bool:
    credential = find_credential(entry.headers, entry.query)
    digest = hashlib.sha256(credential.token.encode()).digest() if credential else b""
    known = next((key for key in _DIGESTS if hmac.compare_digest(key, digest)), None)
    return known is not None and _DIGESTS[known] == entry.agent_id


async def _check(entry: AuthRequest) -> None:
    if not _is_valid(entry):
        raise Unauthorised


async def _auth_app(scope: dict[str, Any], _receive: Any, send: Any) -> None:
    """Answer the auth subrequest of Caddy and nginx."""
    headers = {name.decode(): value.decode() for name, value in scope["headers"]}
    agent = headers.get("x-forwarded-host", "").partition(".")[0]
    status = 200
    try:
        await _check(AuthRequest(HostKind.AGENT, "GET", headers, "", "", agent))
    except Unauthorised:
        status = 401
    await send({"type": "http.response.start", "status": status, "headers": [(b"content-length", b"0")]})
    await send({"type": "http.response.body", "body": b""})


def _serve_auth(port: int) -> None:
    uvicorn.run(_auth_app, port=port, log_config=None, access_log=False, lifespan="off")


def _serve_edge(port: int, upstream: int) -> None:
    async def dial(_agent_id: str, _port: int | None) -> Any:
        return await asyncio.open_connection("127.0.0.1", upstream)

    async def credential(_agent_id: str) -> tuple[str, Sensitive[str]]:
        return "Authorization", Sensitive("Bearer internal")

    dependencies = ProxyDependencies(
        addresses=HostAddresses("localhost", port),
        recall=_is_valid,
        admit=_check,
        find_route=lambda _agent_id, _path: None,
        dial=dial,
        credential=credential,
        subscribe=lambda _listener: None,
        subscribe_routes=lambda _listener: None,
        observe=lambda _record: None,
        cache=ResponseCache(lambda: 0),
    )
    uvicorn.run(
        _auth_app, http=edge_protocol(dependencies), ws="websockets-sansio", port=port, log_config=None, lifespan="off"
    )


# The harness


@contextlib.contextmanager
def _edge(upstream: int) -> Iterator[tuple[int, Sequence[int]]]:
    port = free_port()
    with _serving("edge", port, upstream) as pid:
        yield port, (pid,)


@contextlib.contextmanager
def _caddy(folder: Path, upstream: int) -> Iterator[tuple[int, Sequence[int]]]:
    port, auth = free_port(), free_port()
    config = folder / "caddy.json"
    config.write_text(json.dumps(_caddy_config(port, auth, upstream)))
    argv = [find_caddy(), "run", "--config", str(config)]
    with _serving("auth", auth) as auth_pid, run_process(argv, port, caddy_environment(folder)) as pid:
        yield port, (pid, auth_pid)


@contextlib.contextmanager
def _nginx(folder: Path, upstream: int) -> Iterator[tuple[int, Sequence[int]]]:
    port, auth = free_port(), free_port()
    config = folder / "nginx.conf"
    config.write_text(_NGINX.format(folder=folder, port=port, auth=auth, upstream=upstream))
    with _serving("auth", auth) as auth_pid, run_process([find_nginx() or "", "-c", str(config)], port) as pid:
        yield port, (pid, auth_pid)


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
                }
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


@contextlib.contextmanager
def _serving(server: str, port: int, *more: int) -> Iterator[int]:
    with run_process([sys.executable, "-m", "bench.edge", server, str(port), *map(str, more)], port) as pid:
        yield pid


def _cpu_per_request(port: int, pids: Sequence[int]) -> float:
    """Return the CPU time of a request in microseconds."""
    uvloop.run(_load(port, _REQUESTS // 10))
    before = sum(map(cpu_seconds, pids))
    uvloop.run(_load(port, _REQUESTS))
    return (sum(map(cpu_seconds, pids)) - before) / _REQUESTS * 1e6


async def _load(port: int, requests: int) -> None:
    request = (
        f"GET /bench?x=1 HTTP/1.1\r\nHost: {_HOST}:{port}\r\nAuthorization: Bearer {_TOKEN}\r\n"
        "User-Agent: bench\r\nAccept: */*\r\nAccept-Encoding: gzip\r\n\r\n"
    ).encode()
    await send_requests(port, request, requests, _CONNECTIONS)


def _main(server: str, *ports: str) -> None:
    """Run one of the servers, when this module is the program."""
    numbers = [int(port) for port in ports]
    if server == "upstream":
        uvloop.run(_serve_upstream(*numbers))
    elif server == "auth":
        _serve_auth(*numbers)
    else:
        _serve_edge(*numbers)


if __name__ == "__main__":
    _main(*sys.argv[1:])
