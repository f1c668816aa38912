"""The configuration of Caddy: the real program accepts it, and names the parts that hold our promises."""

import json
import subprocess
from dataclasses import replace
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import pytest

from roost.core.sensitive import Sensitive
from roost.drivers.tls_proxy.caddy import find_caddy
from roost.drivers.tls_proxy.caddy_config import CertificatePair, render_configuration
from roost.drivers.tls_proxy.contract import TlsListeners, TlsOptions
from roost.http.server.server import open_tls_listeners
from tests.platforms.tls import Authority

OPTIONS = TlsOptions("example.com", "http://127.0.0.1:1/x", "roost.sock", 443, 80, "https://acme.example/dir")


@pytest.fixture
def listeners() -> Any:
    opened = open_tls_listeners("127.0.0.1", 0, 0)
    yield opened
    opened.close()


def test_caddy_accepts_it(listeners: TlsListeners, tmp_path: Path) -> None:
    pem = Authority("x").issue("*.example.com").decode()
    (tmp_path / "ca.pem").write_bytes(Authority("ca").certificate)
    full = replace(
        OPTIONS, email="a@example.com", acme_ca=tmp_path / "ca.pem", trusted_proxies=[ip_network("10.0.0.0/8")]
    )
    content = render_configuration(full, listeners, CertificatePair(pem, Sensitive(pem)), ["gone.example.org"])
    (tmp_path / "caddy.json").write_text(json.dumps(content))
    command = [str(find_caddy(None)), "validate", "--config", "caddy.json"]
    done = subprocess.run(
        command,
        cwd=tmp_path,
        env={"HOME": str(tmp_path)},
        pass_fds=listeners.descriptors(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_it_has_the_limits_of_the_edge_and_none_for_bodies(listeners: TlsListeners) -> None:
    content = render_configuration(OPTIONS, listeners, None, [])
    assert content["admin"]["listen"] == "unix/admin.sock|0600"
    servers = content["apps"]["http"]["servers"]
    for server in servers.values():
        assert server["max_header_bytes"] == 64 * 1024
        assert not {"read_timeout", "write_timeout"} & server.keys()
    assert servers["https"]["tls_connection_policies"] == [{}]
    assert "certificates" not in content["apps"]["tls"]
    proxy = servers["https"]["routes"][-1]["handle"][0]
    assert not {"request_buffers", "response_buffers", "flush_interval"} & proxy.keys()
    assert content["apps"]["tls"]["automation"]["policies"][0]["issuers"][0]["ca"] == OPTIONS.acme_url
