"""The same attacks through Caddy, which reads HTTP otherwise: what it passes on must be as harmless (C8, G7)."""

import asyncio
import json
import ssl
import subprocess
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from bench.processes import caddy_environment, find_caddy, free_port, run_process
from tests.contract.attacks import CHUNKS, FRAMING, LINES, MARK, compose_attack, hidden_request
from tests.contract.hosts import KINDS, HostsEnv, Reply, parse_replies, running_hosts

MIB = 1024**2
SILENCE = 1.0
"""Seconds without an answer after which a request is taken for one that gets none."""


@dataclass
class CaddyEnv:
    """Caddy in front of an hosts_env: `http` is its plain port, `tls_port` has a certificate of every name."""

    http: HostsEnv
    tls_port: int


@pytest.fixture(scope="module")
async def caddy(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[CaddyEnv]:
    folder = tmp_path_factory.mktemp("caddy")
    async with running_hosts(folder / "data") as hosts_env:
        with await asyncio.to_thread(_open_caddy, folder, hosts_env) as caddy:
            yield caddy


@contextmanager
def _open_caddy(folder: Path, hosts_env: HostsEnv) -> Iterator[CaddyEnv]:
    http_port, tls_port = free_port(), free_port()
    names = sorted({site.host.rpartition(":")[0] for site in hosts_env.sites.values()} - {"127.0.0.1"})
    proxy = {"handler": "reverse_proxy", "upstreams": [{"dial": f"127.0.0.1:{hosts_env.port}"}], "flush_interval": -1}
    common = {"routes": [{"handle": [proxy]}], "automatic_https": {"disable": True}}
    tls = {"tls_connection_policies": [{}], "strict_sni_host": True, "protocols": ["h1", "h2"]}
    config = {
        "admin": {"disabled": True},
        "logging": {"logs": {"default": {"level": "ERROR"}}},
        "apps": {
            "tls": {"certificates": {"load_files": [_make_certificate(folder, names)]}},
            "http": {
                "servers": {
                    "plain": {"listen": [f"127.0.0.1:{http_port}"], **common},
                    "tls": {"listen": [f"127.0.0.1:{tls_port}"], **common, **tls},
                }
            },
        },
    }
    file = folder / "caddy.json"
    file.write_text(json.dumps(config))
    argv = [find_caddy(), "run", "--config", str(file)]
    with run_process(argv, tls_port, caddy_environment(folder)):
        yield CaddyEnv(hosts_env.at(http_port), tls_port)


def _make_certificate(folder: Path, names: Sequence[str]) -> dict[str, str]:
    key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name([])
    builder = x509.CertificateBuilder().issuer_name(name).subject_name(name).public_key(key.public_key())
    builder = builder.serial_number(1).not_valid_before(datetime.now(UTC) - timedelta(days=1))
    builder = builder.not_valid_after(datetime.now(UTC) + timedelta(days=1))
    builder = builder.add_extension(x509.SubjectAlternativeName([x509.DNSName(each) for each in names]), critical=True)
    files = folder / "certificate.pem", folder / "key.pem"
    files[0].write_bytes(builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
    no_password = serialization.NoEncryption()
    private = serialization.PrivateFormat.PKCS8
    files[1].write_bytes(key.private_bytes(serialization.Encoding.PEM, private, no_password))
    return {"certificate": str(files[0]), "key": str(files[1])}


async def answers_to(hosts_env: HostsEnv, raw: bytes) -> bytes:
    """Return all that comes until the connection ends, or nothing comes any more."""
    reader, writer = await asyncio.open_connection("127.0.0.1", hosts_env.port)
    received = b""
    with suppress(TimeoutError, ConnectionError):
        writer.write(raw)
        while piece := await asyncio.wait_for(reader.read(1 << 16), SILENCE):
            received += piece
    writer.close()
    return received


async def check_others(hosts_env: HostsEnv, stop: asyncio.Event) -> int:
    """Send requests as others do meanwhile; return how many got their own answers, and fail if one did not."""
    site, count = hosts_env.sites["open route"], 0
    while not stop.is_set():
        reply = await hosts_env.ask(site, "GET {path}", f"X-Own: number {count}")
        assert f"x-own: number {count}\r\n" in reply.json()["head"].lower(), reply
        assert (await hosts_env.ask(hosts_env.sites["management"], path=f"/v0/agents/{count}")).status == 404
        count += 1
    return count


@pytest.mark.parametrize("kind", KINDS)
async def test_attacks_meet_nobody_else(caddy: CaddyEnv, kind: str) -> None:
    """No request gets the answer to another one, and what was hidden reaches no program of an agent."""
    hosts_env = caddy.http
    victim, hidden = f"{hosts_env.victim['agentId']}.agents.localhost", hidden_request("x", hosts_env.port)
    chunked = b"POST@Transfer-Encoding: chunked\r\n\r\n"
    attacks = [*FRAMING.values(), *(raw for raw, _ in LINES.values()), *(chunked + raw for raw in CHUNKS.values())]
    stop = asyncio.Event()
    others = asyncio.create_task(check_others(hosts_env, stop))
    try:
        raws = [compose_attack(raw, hosts_env.sites[kind], victim, hidden) for raw in attacks]
        for answer in await asyncio.gather(*(answers_to(hosts_env, raw) for raw in raws)):
            assert b'"agentId"' not in answer.partition(MARK.encode())[2]  # it has no valid key
    finally:
        stop.set()
    assert await others > 3
    assert not [head for head in await hosts_env.seen() if MARK in head]


async def test_another_name_in_the_handshake_is_421(caddy: CaddyEnv) -> None:
    hosts_env = caddy.http
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    site, other = hosts_env.sites["protected route"], hosts_env.sites["open domain"]
    for name, status in ((site.host.partition(":")[0], 200), (other.host.partition(":")[0], 421)):
        reader, writer = await asyncio.open_connection("127.0.0.1", caddy.tls_port, ssl=context, server_hostname=name)
        writer.write(site.head("GET {path}", "Connection: close"))
        (reply,) = parse_replies(await reader.read())
        assert reply.status == status
        writer.close()


def curl(caddy: CaddyEnv, kind: str, *options: str, path: str | None = None) -> Reply:
    """Send a request over HTTP/2; return the response, whose version is in `x-version`."""
    site = caddy.http.sites[kind]
    name = site.host.partition(":")[0]
    headers = [] if site.token is None else ["-H", f"Authorization: Bearer {site.token}"]
    url = f"https://{name}:{caddy.tls_port}{site.path if path is None else site.prefix + path}"
    argv = ["curl", "-sSk", "--http2", "--noproxy", "*", "--max-time", "60", *headers, *options, url]
    argv += ["--resolve", f"{name}:{caddy.tls_port}:127.0.0.1", "-w", "\n%{http_version} %{http_code}"]
    body, _, told = subprocess.run(argv, check=True, capture_output=True).stdout.rpartition(b"\n")
    version, status = told.decode().split()
    return Reply(int(status), [("x-version", version)], body)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "local"])
async def test_http_2_reaches_every_kind_of_host(caddy: CaddyEnv, kind: str, tmp_path: Path) -> None:
    got = await asyncio.to_thread(curl, caddy, kind)
    assert (got.status, got["x-version"]) == (200, "2")
    head = await asyncio.to_thread(curl, caddy, kind, "-I", "-o", "/dev/null")
    assert head.status == 200
    if "route" in kind or (kind.endswith("domain") and not kind.startswith("gateway")):
        (tmp_path / "body").write_bytes(bytes(64 * MIB))
        sent = await asyncio.to_thread(curl, caddy, kind, "--data-binary", f"@{tmp_path / 'body'}", path="/echo")
        assert (sent.status, sent["x-version"], sent.json()["size"]) == (200, "2", 64 * MIB)
        received = await asyncio.to_thread(curl, caddy, kind, path=f"/big?{64 * MIB}")
        assert (received.status, len(received.body)) == (200, 64 * MIB)
