"""An HTTP server that answers what a test says, one answer for each request, and keeps the requests."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

from roost.core.sensitive import Sensitive
from roost.drivers.runtime.kubernetes.api import KubernetesApi
from roost.drivers.runtime.kubernetes.credentials import ClusterAccess, ClusterCredentials

PODS = "/api/v1/namespaces/agents/pods"


@dataclass
class SeenRequest:
    """A request that the server received."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: Any


Answer = bytes | Callable[[asyncio.StreamWriter], Awaitable[None]]


@dataclass
class ScriptedServer:
    """`answers` are sent one by one; a request too many gets 500 without a reason."""

    answers: list[Answer] = field(default_factory=list)
    requests: list[SeenRequest] = field(default_factory=list)
    port: int = 0

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                self.requests.append(await read_request(reader))
                answer = self.answers.pop(0) if self.answers else answer_with(500)
                if not isinstance(answer, bytes):
                    await answer(writer)
                    return
                if not answer:
                    return
                writer.write(answer)
        except (EOFError, ConnectionError):
            pass
        finally:
            writer.close()


async def read_request(reader: asyncio.StreamReader) -> SeenRequest:
    lines = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    method, target, _ = lines[0].split(" ")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines[1:] if line)}
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    parts = urlsplit(target)
    query = {name: values[0] for name, values in parse_qs(parts.query).items()}
    return SeenRequest(method, parts.path, query, headers, json.loads(body) if body else None)


def answer_with(status: int, body: object = b"", **headers: str) -> bytes:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = [f"HTTP/1.1 {status} X", *(f"{name.replace('_', '-')}: {value}" for name, value in headers.items())]
    return "\r\n".join([*lines, f"Content-Length: {len(content)}", "", ""]).encode() + content


def refuse_with(status: int, reason: str = "", message: str = "", **headers: str) -> bytes:
    return answer_with(status, make_status(status, reason, message), **headers)


def make_status(status: int, reason: str = "", message: str = "") -> dict[str, Any]:
    return {"kind": "Status", "metadata": {}, "status": "Failure", "code": status, "reason": reason, "message": message}


def make_pod(name: str, version: int = 1, phase: str = "Running") -> dict[str, Any]:
    return {"metadata": {"name": name, "resourceVersion": str(version)}, "status": {"phase": phase}}


def make_list(*items: dict[str, Any], version: int = 10, more: str = "") -> bytes:
    return answer_with(200, {"metadata": {"resourceVersion": str(version), "continue": more}, "items": items})


@asynccontextmanager
async def serve_answers(*answers: Answer) -> AsyncIterator[tuple[KubernetesApi, ScriptedServer]]:
    scripted = ScriptedServer(list(answers))
    server = await asyncio.start_server(scripted.handle, "127.0.0.1", 0)
    scripted.port = server.sockets[0].getsockname()[1]
    token = ClusterCredentials(token=Sensitive(b"secret"))
    api = KubernetesApi(ClusterAccess(f"http://127.0.0.1:{scripted.port}", "agents", token), "1.2.3")
    try:
        yield api, scripted
    finally:
        await api.close()
        server.close()
