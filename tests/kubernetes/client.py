"""A client for the tests of API semantics: plain HTTP to a base URL with a token, and nothing of the fake."""

import asyncio
import base64
import json
import os
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2 as httpx
import yaml
from websockets.asyncio.client import ClientConnection, connect
from websockets.typing import Subprotocol

Object = dict[str, Any]
IMAGE = os.environ.get("TEST_KUBERNETES_IMAGE", "busybox:1")
RBAC = "/apis/rbac.authorization.k8s.io/v1"


@dataclass
class KubernetesClient:
    """Requests to an API server. `namespace` is one that the tests may fill."""

    url: str
    token: str
    namespace: str = "default"
    tls: ssl.SSLContext | None = None
    warnings: list[str] = field(default_factory=list[str])
    others: list["KubernetesClient"] = field(default_factory=list)

    def __post_init__(self) -> None:
        headers = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        verify = self.tls or True
        self.http = httpx.AsyncClient(base_url=self.url, headers=headers, verify=verify, timeout=30, trust_env=False)

    def with_token(self, token: str) -> "KubernetesClient":
        """Return a client of another user, which is closed with this one."""
        self.others.append(KubernetesClient(self.url, token, self.namespace, self.tls))
        return self.others[-1]

    async def close(self) -> None:
        for one in (self, *self.others):
            await one.http.aclose()

    def path(self, plural: str, name: str = "", *, group: str = "/api/v1") -> str:
        """Return the path of a resource in the namespace."""
        return f"{group}/namespaces/{self.namespace}/{plural}" + (f"/{name}" if name else "")

    async def request(self, method: str, path: str, body: Any = None, *, kind: str = "application/json",
                      **query: str) -> httpx.Response:  # fmt: skip
        content = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": kind} if body is not None else {}
        found = await self.http.request(method, path, content=content, headers=headers, params=query)
        self.warnings = found.headers.get_list("warning")
        return found

    async def get(self, path: str, **query: str) -> Any:
        return (await self.request("GET", path, **query)).raise_for_status().json()

    async def create(self, path: str, item: Object, **query: str) -> Any:
        found = await self.request("POST", path, item, **query)
        assert found.status_code == 201, found.text
        return found.json()

    async def refused(self, method: str, path: str, body: Any = None, *, kind: str = "application/json",
                      **query: str) -> tuple[int, str, str]:  # fmt: skip
        """Return the code, the reason and the message of a refusal."""
        status = (await self.request(method, path, body, kind=kind, **query)).json()
        assert status["kind"] == "Status", status
        return status["code"], status.get("reason", ""), status["message"]

    async def wait(self, path: str, accept: Any, seconds: float = 60) -> Object:
        """Watch one object until `accept` is true of it."""
        folder, _, name = path.rpartition("/")
        async with asyncio.timeout(seconds), self.watch(folder, fieldSelector=f"metadata.name={name}") as events:
            async for event in events:
                if event["type"] != "DELETED" and accept(event["object"]):
                    return event["object"]
        raise AssertionError(f"the watch of {path} has ended")

    async def wait_gone(self, path: str, seconds: float = 60) -> None:
        async with asyncio.timeout(seconds):
            while (await self.request("GET", path)).status_code != 404:
                await asyncio.sleep(0.02)

    @asynccontextmanager
    async def watch(self, path: str, **query: str) -> AsyncIterator[AsyncIterator[Object]]:
        async with self.http.stream("GET", path, params={"watch": "true", **query}, timeout=None) as found:
            if found.status_code != 200:
                raise AssertionError((await found.aread()).decode())

            async def events() -> AsyncIterator[Object]:
                async for line in found.aiter_lines():
                    if line:
                        yield json.loads(line)

            yield events()

    @asynccontextmanager
    async def exec(
        self, pod: str, *command: str, protocol: str = "v5", **query: str
    ) -> AsyncIterator[ClientConnection]:
        streams = {"stdout": "true", "stderr": "true", **query}
        params = httpx.QueryParams([*streams.items(), *(("command", word) for word in command)])
        url = f"{self.url.replace('http', 'ws', 1)}{self.path('pods', pod)}/exec?{params}"
        headers = {"Authorization": f"Bearer {self.token}"}
        names = [Subprotocol(f"{protocol}.channel.k8s.io")]
        async with connect(url, additional_headers=headers, subprotocols=names, ssl=self.tls, proxy=None) as socket:
            yield socket


def real_client() -> KubernetesClient | None:
    """Return a client of the real cluster that the environment names, None if it names none."""
    if "TEST_KUBERNETES_IMAGE" not in os.environ or not (path := os.environ.get("KUBECONFIG")):
        return None
    config = yaml.safe_load(Path(path).read_text())
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
    context = ssl.create_default_context(cadata=authority)
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return KubernetesClient(cluster["server"], user["token"], tls=context)


def pod(name: str, *command: str, **spec: Any) -> Object:
    """Return a pod that the restricted level allows."""
    security = {"runAsNonRoot": True, "runAsUser": 1000, "seccompProfile": {"type": "RuntimeDefault"}}
    container = {
        "name": "main", "image": IMAGE, "command": list(command) or ["sleep", "1000"],
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
    }  # fmt: skip
    plain = {"containers": [container], "securityContext": security, "terminationGracePeriodSeconds": 1,
             "automountServiceAccountToken": False}  # fmt: skip
    metadata = {"name": name, "labels": {"app": name}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {**plain, **spec}}


def config_map(name: str, labels: dict[str, str] | None = None, **data: str) -> Object:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": labels or {}}, "data": data}
