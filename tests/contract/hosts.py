"""One server with every kind of host, raw requests to each, and strict reading of all that it answers.

`python -m tests.contract.hosts FOLDER` runs one as a process, which prints what it is and ends with its input.
"""

import asyncio
import json
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import httpx2 as httpx

from roost.core import log
from roost.drivers.runtime.fake import FakeRuntime
from roost.storage.content.model import ContentNetwork
from tests.conformance.name_server import NameServer, serve_names
from tests.contract.storage import keep
from tests.support.server import RunningServer, running

PROGRAM = Path(__file__).with_name("hostile_program.py")
PORT = 3000
CONTENT = b"content of a storage gateway"
PROGRAM_KINDS = ("protected route", "open route", "protected domain", "open domain")
"""Kinds of hosts behind which the agent's own program answers."""
GATEWAY_KINDS = ("agent's gateway", "gateway's domain")
KINDS = (
    *("local", "management", "storage API", "uploads", "storage gateway", "origin of a CID", "agent's platform paths"),
    *GATEWAY_KINDS,
    *PROGRAM_KINDS,
)
HANDSHAKE = (
    *("Connection: Upgrade", "Upgrade: websocket"),
    *("Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Version: 13"),
)
CUSTOM_DOMAIN = "app.example.com"


@dataclass(frozen=True)
class HostExample:
    """A kind of host: a path that answers GET with 200 there, and the credential for it."""

    host: str
    path: str
    token: str | None
    prefix: str = ""
    """Of the paths of the agent's program."""

    def head(self, line: str = "GET {path}", *lines: str, path: str | None = None, token: str | None = "") -> bytes:
        """Return a request head; an empty `token` is the site's own."""
        token = self.token if token == "" else token
        credential = [] if token is None else [f"Authorization: Bearer {token}"]
        first = f"{line} HTTP/1.1" if " HTTP/" not in line else line
        first = first.format(path=self.path if path is None else self.prefix + path)
        return "\r\n".join((first, f"Host: {self.host}", *credential, *lines, "", "")).encode("latin-1")


@dataclass(frozen=True)
class Reply:
    status: int
    headers: Sequence[tuple[str, str]]
    body: bytes

    def __getitem__(self, name: str) -> str | None:
        return next((value for key, value in self.headers if key == name), None)

    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class HostsEnv:
    """A server, an agent with a program, and a storage gateway with a file.

    key: of the agent's tenant. port: of the server, or of a proxy in front of it.
    """

    key: str
    port: int
    agent: Mapping[str, Any]
    victim: Mapping[str, Any]
    victim_key: str
    """An agent and a key of another tenant."""
    sites: Mapping[str, HostExample]

    def at(self, port: int) -> "HostsEnv":
        return replace(self, port=port)

    async def send(self, *parts: bytes, end: bool = False, seconds: float = 10) -> bytes:
        """Send raw bytes, and the end of all if `end`; return all that comes until the server ends the connection."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        received = b""
        try:
            async with asyncio.timeout(seconds):
                for part in parts:
                    writer.write(part)
                if end:
                    writer.write_eof()
                while piece := await reader.read(1 << 16):
                    received += piece
        except ConnectionError:
            pass
        except TimeoutError:
            raise AssertionError(f"not ended after {seconds} s: {received[-1000:]!r}") from None
        finally:
            writer.close()
        return received

    async def ask(
        self, site: HostExample, line: str = "GET {path}", *lines: str, body: bytes = b"", **options: Any
    ) -> Reply:
        """Send one request; return its response."""
        raw = await self.send(site.head(line, "Connection: close", *lines, **options) + body)
        (reply,) = [reply for reply in parse_replies(raw, is_head=line.startswith("HEAD ")) if reply.status >= 200]
        return reply

    async def call(self, line: str, body: Any = None) -> Any:
        """Send a request with JSON to the management address; return the JSON of a good response."""
        content = b"" if body is None else json.dumps(body).encode()
        lines = ("Content-Type: application/json", f"Content-Length: {len(content)}")
        reply = await self.ask(self.sites["management"], line, *(lines if content else ()), body=content)
        assert reply.status in {200, 201}, reply
        return reply.json()

    async def shake_hands(self, head: bytes) -> int:
        """Send a WebSocket handshake; return the status of the response."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(head)
        async with asyncio.timeout(10):
            status = int((await reader.readuntil(b"\r\n\r\n")).split()[1])
        writer.close()
        return status

    async def plan(self, answer: bytes) -> str:
        """Leave an answer with the agent's program; return its number."""
        length = f"Content-Length: {len(answer)}"
        reply = await self.ask(self.sites["open route"], "POST {path}", length, body=answer, path="/plan")
        return reply.body.decode()

    async def seen(self) -> Sequence[str]:
        """Return the heads that the agent's program got so far."""
        return (await self.ask(self.sites["open route"], path="/seen")).json()


def parse_replies(data: bytes, *, is_head: bool = False) -> Sequence[Reply]:
    """Read complete responses; whatever is no response fails."""
    replies: list[Reply] = []
    while data:
        head, end, data = data.partition(b"\r\n\r\n")
        assert end, head
        line, *lines = head.decode("latin-1").split("\r\n")
        match = re.fullmatch(r"HTTP/1\.[01] (\d{3})( .*)?", line)
        assert match, line
        headers = [(name.lower(), value.strip()) for name, _, value in (each.partition(":") for each in lines)]
        reply = Reply(int(match[1]), headers, b"")
        if not is_head and reply.status >= 200 and reply.status not in {204, 304}:
            body, data = _split_body(reply, data)
            reply = replace(reply, body=body)
        replies.append(reply)
    return replies


def _split_body(reply: Reply, data: bytes) -> tuple[bytes, bytes]:
    if reply["transfer-encoding"] == "chunked":
        body = b""
        while True:
            size, _, data = data.partition(b"\r\n")
            length = int(size, 16)
            body, tail, data = body + data[:length], data[length : length + 2], data[length + 2 :]
            assert tail == b"\r\n"
            if not length:
                return body, data
    length = int(reply["content-length"] or len(data))
    assert len(data) >= length
    return data[:length], data[length:]


@asynccontextmanager
async def running_hosts(folder: Path) -> AsyncIterator[HostsEnv]:
    async with (
        serve_names() as names,
        running(folder, runtime=FakeRuntime(folder), ROOST_DNS_SERVERS=f"127.0.0.1:{names.port}") as server,
    ):
        yield await build_hosts(server, names)


@contextmanager
def hosts_process(folder: Path) -> Iterator[tuple[int, HostsEnv]]:
    """Run one as a process; yield its pid, too."""
    argv = [sys.executable, "-m", "tests.contract.hosts", str(folder)]
    process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin is not None
    assert process.stdout is not None
    with process.stdin, process.stdout:
        told = json.loads(process.stdout.readline())
        sites = {kind: HostExample(**site) for kind, site in told.pop("sites").items()}
        try:
            yield process.pid, HostsEnv(sites=sites, **told)
        finally:
            process.stdin.close()
            process.wait(20)


async def _serve_hosts(folder: Path) -> None:
    async with running_hosts(folder) as hosts_env:
        print(json.dumps(asdict(hosts_env)), flush=True)
        await asyncio.to_thread(sys.stdin.read)


async def build_hosts(server: RunningServer, names: NameServer) -> HostsEnv:
    api, storage = server.client(server.key()), server.client(server.key(), "api.localhost")
    agent = await _create_agent(server, "acme")
    path = f"/v0/agents/{agent['agentId']}"
    await api.put(f"{path}/files/content", params={"path": "program.py"}, content=PROGRAM.read_bytes())
    started = f"nohup python3 program.py {PORT} >/dev/null 2>&1 & while ! (: </dev/tcp/127.0.0.1/{PORT}); do :; done"
    ran = await api.post(f"{path}/console/exec", json={"command": f"bash -c '{started}' 2>/dev/null"})
    assert ran.json()["exitCode"] == 0, ran.text
    mappings = [{"pathPrefix": f"/{name}", "port": PORT, "protected": name == "closed"} for name in ("closed", "open")]
    assert (await api.put(f"{path}/port-forwarding", json={"mappings": mappings})).status_code == 200
    await _register_domains(api, agent["agentId"], names)
    gateway = (await storage.get("/v3/gateways")).json()["data"]["rows"][0]
    cid = (await keep(server, "acme", ContentNetwork.PUBLIC, CONTENT)).cid
    suffix, key, token = f"localhost:{server.port}", server.key(), agent["gatewayToken"]
    own, public = f"{agent['agentId']}.agents.{suffix}", f"{gateway['domain']}.gateways.{suffix}"
    sites = {
        "local": HostExample(f"127.0.0.1:{server.port}", "/v0/agents", key),
        "management": HostExample(f"agents.{suffix}", "/v0/agents", key),
        "storage API": HostExample(f"api.{suffix}", "/v3/gateways", key),
        "uploads": HostExample(f"uploads.{suffix}", "/v3/files/public", key),
        "storage gateway": HostExample(public, f"/ipfs/{cid}", None),
        "origin of a CID": HostExample(f"{cid}.ipfs.{public}", "/", None),
        "agent's platform paths": HostExample(own, "/v0/logs", token),
        "agent's gateway": HostExample(own, "/echo", token),
        "protected route": HostExample(own, "/closed/echo", token, "/closed"),
        "open route": HostExample(own, "/open/echo", None, "/open"),
        "gateway's domain": HostExample(f"gateway-of-it.agents.{suffix}", "/echo", token),
        "protected domain": HostExample(f"closed-to-all.agents.{suffix}", "/echo", token),
        "open domain": HostExample(f"{CUSTOM_DOMAIN}:{server.port}", "/echo", None),
    }
    return HostsEnv(key, server.port, agent, await _create_agent(server, "victim"), server.key("victim"), sites)


async def _register_domains(api: httpx.AsyncClient, agent_id: str, names: NameServer) -> None:
    path = f"/v0/agents/{agent_id}/domains"
    for domain in (
        {"subdomain": "gateway-of-it"},
        {"subdomain": "closed-to-all", "targetPort": PORT},
        {"customDomain": CUSTOM_DOMAIN, "targetPort": PORT, "protected": False},
    ):
        made = await api.post(path, json=domain)
        assert made.status_code == 201, made.text
    challenge = (await api.post(f"{path}/challenge", json={"customDomain": CUSTOM_DOMAIN})).json()
    names.set_texts(challenge["name"], [challenge["value"]])
    verified = await api.post(f"{path}/{made.json()['domain']['id']}/verify")
    assert verified.json()["domain"]["status"] == "active", verified.text


async def _create_agent(server: RunningServer, tenant: str) -> dict[str, Any]:
    created = await server.client(server.key(tenant)).post("/v0/agents", json={"name": tenant})
    assert created.status_code == 201, created.text
    return created.json()["agent"]


if __name__ == "__main__":
    log.configure_logging("error")
    asyncio.run(_serve_hosts(Path(sys.argv[1])))
