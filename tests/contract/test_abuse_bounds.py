"""What one server holds in memory while strangers and tenants send too much, and whom it serves meanwhile."""

import asyncio
import base64
import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2 as httpx
import pytest

from tests.storage.server_process import StorageServerProcess, server_process
from tests.storage.test_memory import memory

MIB = 1024**2
JSON = "Content-Type: application/json"

_CALLER = """
import http.client, sys, time
port, key = int(sys.argv[1]), sys.argv[2]
body = b'{"model": "scripted", "messages": [{"role": "user", "content": "%b"}]}' % (b"x" * 4 * 1024**2)
headers = {"Host": "agents.localhost", "Authorization": "Bearer " + key, "Content-Type": "application/json"}
while True:
    began, connection = time.monotonic(), http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("POST", "/v0/llm/v1/chat/completions", body, headers)
    print(connection.getresponse().status, began, flush=True)
    connection.close()
    time.sleep(0.1)
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StorageServerProcess]:
    with server_process(tmp_path_factory.mktemp("bounds") / "data") as process:
        yield process


@asynccontextmanager
async def bounded(server: StorageServerProcess, limit: int) -> AsyncIterator[None]:
    """Assert that the server takes at most `limit` more bytes meanwhile, and answers another tenant all the time."""
    idle = memory(server, "VmRSS")
    Path(f"/proc/{server.pid}/clear_refs").write_text("5")  # the peak is measured from here on
    argv = [sys.executable, "-c", _CALLER, str(server.port), server.keys[-1]]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as caller:
        assert caller.stdout is not None
        answers = [caller.stdout.readline().split()]
        try:
            yield
            end = time.monotonic()
            while float(answers[-1][1]) < end:  # until one that began after what happened meanwhile
                answers.append(caller.stdout.readline().split())
        finally:
            caller.kill()
    assert {status for status, _ in answers} == {"200"}, answers
    more = memory(server, "VmHWM") - idle
    assert more < limit, f"{more / MIB:.0f} MiB"


class Request:
    """Request over its own connection, which may stay unfinished."""

    def __init__(self, server: StorageServerProcess, host: str, request: str, length: int, *headers: str) -> None:
        self._port = server.port
        lines = (f"{request} HTTP/1.1", f"Host: {host}", f"Content-Length: {length}", *headers, "", "")
        self._head = "\r\n".join(lines).encode()

    async def send(self, body: bytes) -> None:
        """Send as much of a body as the server takes before it answers."""
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port)
        self._writer.write(self._head)
        try:
            for start in range(0, len(body), MIB // 4):
                self._writer.write(body[start : start + MIB // 4])
                await self._writer.drain()
        except ConnectionError:
            return  # it answered and closed the connection

    async def status(self) -> int:
        """Return the status of the answer, 0 if the server closed the connection without one."""
        try:
            line = await self._reader.readline()
        except ConnectionError:
            line = b""
        self._writer.close()
        return int(line.split()[1]) if line else 0

    def close(self) -> None:
        self._writer.close()


async def exchange(requests: Sequence[Request], body: bytes) -> Counter[int]:
    """Send a body with all requests at once; return how many got each status."""

    async def one(request: Request) -> int:
        await request.send(body)
        return await request.status()

    async with asyncio.timeout(120):
        return Counter(await asyncio.gather(*map(one, requests)))


async def test_unfinished_bodies_of_strangers(server: StorageServerProcess) -> None:
    unknown = "0" * 32
    targets = [
        ("agents.localhost", "POST /v0/agents"),
        ("agents.localhost", "POST /v0/llm/v1/chat/completions"),
        ("api.localhost", "POST /v3/files"),
        ("api.localhost", "POST /pinning/pinJSONToIPFS"),
        ("api.localhost", "POST /pinning/pinFileToIPFS"),
        ("uploads.localhost", f"PATCH /v3/files/{unknown}/{unknown}"),
        (f"{'a' * 12}.agents.localhost", "POST /v0/files/upload"),
        (f"{'a' * 12}.agents.localhost", "POST /anything"),
        ("name.gateways.localhost", "POST /ipfs/x"),
    ]
    requests = [Request(server, *targets[number % len(targets)], 10 * MIB, JSON) for number in range(1200)]
    unknown_paths = [Request(server, "agents.localhost", "POST /nowhere", 10 * MIB, JSON) for _ in range(100)]
    async with bounded(server, 320 * MIB):
        statuses, missing = await asyncio.gather(
            *(exchange(each, b"[" * (MIB // 2)) for each in (requests, unknown_paths))
        )
    assert statuses.keys() <= {401, 413, 415}, statuses
    assert missing.keys() == {404}, missing


async def test_large_pins_of_one_tenant(server: StorageServerProcess) -> None:
    body = json.dumps({"pinataContent": {"text": "x" * (10 * MIB - 100)}}).encode()
    key = f"Authorization: Bearer {server.key}"
    requests = [
        Request(server, "api.localhost", "POST /pinning/pinJSONToIPFS", len(body), key, JSON) for _ in range(200)
    ]
    async with bounded(server, 400 * MIB):
        statuses = await exchange(requests, body)
    assert statuses[200] > 3
    assert statuses[429] > 100
    assert statuses.keys() <= {200, 429, 0}, statuses


async def test_large_files_of_one_gateway_token(server: StorageServerProcess) -> None:
    headers = {"Host": "agents.localhost", "Authorization": f"Bearer {server.key}"}
    async with httpx.AsyncClient(headers=headers, timeout=60, trust_env=False) as client:
        created = await client.post(f"http://127.0.0.1:{server.port}/v0/agents", json={"name": "Ada"})
        agent = created.json()["agent"]
        await _fill_uploads(server, agent)
        deleted = await client.delete(f"http://127.0.0.1:{server.port}/v0/agents/{agent['agentId']}")
        assert deleted.status_code == 200  # its processes would outlive the server


async def _fill_uploads(server: StorageServerProcess, agent: dict[str, str]) -> None:
    content = base64.b64encode(bytes(10 * MIB - 1000)).decode()
    body = json.dumps({"filename": "a.bin", "contentBase64": content}).encode()
    token, host = f"Authorization: Bearer {agent['gatewayToken']}", f"{agent['agentId']}.agents.localhost"
    requests = [Request(server, host, "POST /v0/files/upload", len(body), token, JSON) for _ in range(64)]
    async with bounded(server, 640 * MIB):
        statuses = await exchange(requests, body)
    assert statuses[200] > 3
    assert statuses[429] > 20
    assert statuses.keys() <= {200, 429, 0}, statuses


async def test_bodies_that_three_tenants_hold_leave_a_share_for_others(server: StorageServerProcess) -> None:
    held = [
        Request(server, "api.localhost", "POST /pinning/pinJSONToIPFS", 10 * MIB, f"Authorization: Bearer {key}", JSON)
        for key in server.keys[:3]
        for _ in range(130)
    ]
    async with bounded(server, 400 * MIB):
        await asyncio.gather(*(request.send(b"[" * MIB) for request in held))
    for request in held:
        request.close()
