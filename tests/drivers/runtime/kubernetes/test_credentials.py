"""Service accounts and kubeconfig files, also those that change."""

import asyncio
import base64
import json
import ssl
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from roost.core import clock
from roost.core.sensitive import Sensitive
from roost.drivers.runtime.kubernetes.api import KubernetesApi
from roost.drivers.runtime.kubernetes.credentials import (
    ClusterAccess,
    ClusterCredentials,
    KubernetesMisconfigured,
    load_kubeconfig,
    load_service_account,
)
from roost.drivers.runtime.kubernetes.errors import KubernetesUntrusted
from tests.drivers.runtime.kubernetes.api_server import ScriptedServer, answer_with
from tests.drivers.runtime.kubernetes.authority import Authority

URL = "https://10.0.0.1:6443"


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


@pytest.fixture
def account(tmp_path: Path, authority: Authority) -> Path:
    (tmp_path / "token").write_text("first\n")
    (tmp_path / "namespace").write_text("agents\n")
    (tmp_path / "ca.crt").write_bytes(authority.pem)
    return tmp_path


def test_a_service_account_gives_address_namespace_and_token(account: Path) -> None:
    access = load_service_account(URL, folder=account)
    assert (access.url, access.namespace) == (URL, "agents")
    assert access.headers() == {"Authorization": "Bearer first"}
    assert load_service_account(URL, "others", account).namespace == "others"


def test_a_token_is_read_again_after_a_minute_or_a_refusal(account: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    access = load_service_account(URL, folder=account)
    (account / "token").write_text("second")
    assert access.headers() == {"Authorization": "Bearer first"}
    access.expire()
    assert access.headers() == {"Authorization": "Bearer second"}
    (account / "token").write_text("third")
    now = time.monotonic()
    monkeypatch.setattr(clock, "monotonic_seconds", lambda: now + 61)
    assert access.headers() == {"Authorization": "Bearer third"}
    (account / "token").unlink()
    access.expire()
    assert access.headers() == {"Authorization": "Bearer third"}


def test_a_secret_is_not_shown(account: Path) -> None:
    access = load_service_account(URL, folder=account)
    assert "first" not in repr(vars(access))


@pytest.mark.parametrize("missing", ["token", "namespace", "ca.crt", "host"])
def test_an_incomplete_service_account_is_refused(account: Path, missing: str) -> None:
    (account / missing).unlink(missing_ok=True)
    with pytest.raises(KubernetesMisconfigured):
        load_service_account(URL if missing != "host" else None, folder=account)


def write_config(folder: Path, **changes: Mapping[str, Any]) -> Path:
    path = folder / "config"
    context = {"cluster": "c", "user": "u", "namespace": "agents", **changes.get("context", {})}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "x",
        "contexts": [{"name": "other", "context": {}}, {"name": "x", "context": context}],
        "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:6443/k8s/", **changes.get("cluster", {})}}],
        "users": [{"name": "u", "user": changes.get("user", {"token": "t-1"})}],
    }
    path.write_text(json.dumps(config))
    return path


def encode(data: bytes) -> str:
    return base64.b64encode(data).decode()


def test_a_kubeconfig_gives_its_current_or_a_named_context(account: Path, authority: Authority) -> None:
    access = load_kubeconfig(write_config(account, cluster={"certificate-authority-data": encode(authority.pem)}))
    assert (access.url, access.namespace) == ("https://127.0.0.1:6443/k8s", "agents")
    assert access.headers() == {"Authorization": "Bearer t-1"}
    assert access.server_name == "127.0.0.1"
    assert len(access.context.get_ca_certs()) == 1
    certificate, key = authority.sign("roost")
    (account / "key.pem").write_bytes(key)
    user = {"client-certificate-data": encode(certificate), "client-key": "key.pem", "tokenFile": "token"}
    cluster = {"certificate-authority": "ca.crt", "tls-server-name": "kubernetes"}
    path = write_config(account, cluster=cluster, user=user, context={"namespace": ""})
    access = load_kubeconfig(path, context="x")
    assert (access.namespace, access.server_name) == ("default", "kubernetes")
    assert access.headers() == {"Authorization": "Bearer first"}


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"cluster": {"insecure-skip-tls-verify": True}}, "insecure-skip-tls-verify is not supported"),
        ({"cluster": {"server": "http://10.0.0.1"}}, "must have an https URL"),
        ({"cluster": {"server": "10.0.0.1"}}, "must be a URL"),
        ({"cluster": {"certificate-authority-data": "%"}}, "certificate-authority-data is no base64"),
        ({"cluster": {"certificate-authority-data": encode(b"x")}}, "cannot be read"),
        ({"cluster": {"certificate-authority": "absent"}}, "cannot be read: .*absent"),
        ({"user": {"exec": {"command": "aws"}}}, "a credential plugin"),
        ({"user": {"client-key": "token"}}, "must both be given"),
        ({"user": {"token": "\xe4"}}, "cannot be read"),
        ({"context": {"cluster": "absent"}}, "there is no cluster 'absent'"),
        ({"context": {"user": "absent"}}, "there is no user 'absent'"),
    ],
)
def test_a_kubeconfig_that_is_wrong_says_where(tmp_path: Path, changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(KubernetesMisconfigured, match=reason) as refused:
        load_kubeconfig(write_config(tmp_path, **changes))
    assert "\n" not in refused.value.message


@pytest.mark.parametrize("text", ["", "a: [", "contexts: {}", "- a", "a: &x b\nc: *x"])
def test_a_file_that_is_no_kubeconfig_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "config").write_text(text)
    with pytest.raises(KubernetesMisconfigured, match="The kubeconfig"):
        load_kubeconfig(tmp_path / "config")
    with pytest.raises(KubernetesMisconfigured, match="cannot be read"):
        load_kubeconfig(tmp_path / "absent")


@pytest.mark.anyio
async def test_an_authority_and_a_client_certificate_may_be_replaced(account: Path, authority: Authority) -> None:
    successor = Authority()
    server = ScriptedServer()
    names: list[str] = []

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        certificate = writer.get_extra_info("peercert")
        names.append(dict(part[0] for part in certificate["subject"])["commonName"])
        server.answers = [answer_with(200, {}, Connection="close"), b""]
        await server.handle(reader, writer)

    def make_context(own: Authority) -> ssl.SSLContext:
        context = own.make_context(account, "kubernetes")
        context.load_verify_locations(cadata=(authority.pem + successor.pem).decode())
        context.verify_mode = ssl.CERT_REQUIRED
        return context

    def write_client(own: Authority, name: str) -> None:
        pem, key = own.sign(name)
        (account / "client.pem").write_bytes(pem)
        (account / "client.key").write_bytes(key)

    write_client(authority, "first")
    first = await asyncio.start_server(handle, "127.0.0.1", 0, ssl=make_context(authority))
    second = await asyncio.start_server(handle, "127.0.0.1", 0, ssl=make_context(successor))
    credentials = ClusterCredentials(
        account / "ca.crt", account / "client.pem", account / "client.key", Sensitive(b"t")
    )
    ports = [one.sockets[0].getsockname()[1] for one in (first, second)]
    access = ClusterAccess(f"https://127.0.0.1:{ports[0]}", "agents", credentials, "kubernetes")
    api = KubernetesApi(access, "1")
    assert await api.get("/api") == {}
    access.url = f"https://127.0.0.1:{ports[1]}"
    (account / "ca.crt").write_bytes(authority.pem + successor.pem)
    write_client(successor, "second")
    assert await api.get("/api") == {}  # the first attempt fails, and the files are read again
    await api.close()
    assert names == ["first", "second"]
    stranger = ClusterAccess(access.url, "agents", ClusterCredentials(account / "ca.crt"), "other")
    api = KubernetesApi(stranger, "1")
    with pytest.raises(KubernetesUntrusted, match="certificate verify failed"):
        await api.get("/api")
    await api.close()
    first.close()
    second.close()
