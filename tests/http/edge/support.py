"""A real server with the edge in it, in a thread of its own on uvloop, with real upstreams behind it."""

import asyncio
import contextlib
import json
import socket
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, MutableMapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import uvicorn
import uvloop

from roost.agents.network.routes.model import PathRoute, find_route
from roost.core.sensitive import Sensitive
from roost.http.edge.dependencies import ProxyDependencies, ProxyLimits
from roost.http.edge.protocol import EdgeHttpProtocol, edge_protocol
from roost.http.stack.address import HostAddresses
from roost.http.storage_gateway.response_cache import ResponseCache
from roost.identity.auth_request import AuthRequest
from roost.identity.caller import Caller, CallerKind, token_digest
from roost.identity.credentials import find_credential
from roost.identity.errors import MissingCredential, Unauthorised
from roost.warden_client.errors import DialRefused
from roost.web.access_log import AccessRecord

TOKEN = "rst_gw_" + "ab" * 32
INTERNAL = "Bearer internal-credential"
AGENT = "agent-one"

Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


async def hello_app(scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
    """The application behind the edge: says what it was asked, and counts what it was sent."""
    if scope["type"] == "lifespan":
        while True:
            message = await receive()
            await send({"type": f"{message['type']}.complete"})
            if message["type"] == "lifespan.shutdown":
                return
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.accept"})
        await send({"type": "websocket.send", "text": f"app {scope['path']}"})
        await send({"type": "websocket.close"})
        return
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        size += len(message.get("body", b""))
        if not message.get("more_body"):
            break
    body = f"app {scope['method']} {scope['path']} {size}".encode()
    headers = [(b"content-length", str(len(body)).encode()), (b"content-type", b"text/plain")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


@dataclass
class EdgeServer:
    """One running server. What the gate does can be changed while it runs."""

    port: int = 0
    records: list[AccessRecord] = field(default_factory=list)
    uses: list[str] = field(default_factory=list)
    tokens: dict[str, str] = field(default_factory=lambda: {AGENT: TOKEN})
    upstreams: dict[str, tuple[str, int]] = field(default_factory=dict)
    dial: Callable[[str], Awaitable[Any]] | None = None
    dials: int = 0
    loop: asyncio.AbstractEventLoop | None = None
    gateways: list[asyncio.Server] = field(default_factory=list)
    protocol: type[EdgeHttpProtocol] | None = None
    create_protocol: Callable[[], EdgeHttpProtocol] | None = None
    listener: Callable[[str], None] | None = None
    routes: dict[str, Sequence[PathRoute]] = field(default_factory=dict)
    route_listener: Callable[[str], None] | None = None
    cache: ResponseCache = field(default_factory=lambda: ResponseCache(lambda: 0))

    @property
    def host(self) -> str:
        return f"{AGENT}.agents.localhost:{self.port}"

    def on_loop(self, coroutine: Any) -> Any:
        assert self.loop is not None
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(30)

    def serve(self, handler: Handler, agent_id: str = AGENT, *, tell: bool = True) -> None:
        """Stand a gateway up for an agent, on the server's loop; nothing of a former one is used again."""

        async def closing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            with contextlib.closing(writer), contextlib.suppress(asyncio.CancelledError):
                await handler(reader, writer)

        async def start() -> int:
            server = await asyncio.start_server(closing, "127.0.0.1", 0, limit=1 << 20)
            self.gateways.append(server)
            return server.sockets[0].getsockname()[1]

        self.upstreams[agent_id] = ("127.0.0.1", self.on_loop(start()))
        if tell:
            self.tell(agent_id)

    def rotate(self, agent_id: str = AGENT) -> str:
        self.tokens[agent_id] = "rst_gw_" + "cd" * 32

        self.tell(agent_id)
        return self.tokens[agent_id]

    def tell(self, agent_id: str) -> None:
        """What the edge is told when an agent's credentials change."""

        async def tell() -> None:
            assert self.listener is not None
            self.listener(agent_id)

        self.on_loop(tell())

    def set_routes(self, *routes: PathRoute) -> None:
        """Replace the routes of the agent."""

        async def replace() -> None:
            assert self.route_listener is not None
            self.routes[AGENT] = routes
            self.route_listener(AGENT)

        self.on_loop(replace())

    async def clear(self) -> None:
        """Nothing may be left open when the loop ends."""
        for server in self.gateways:
            server.close()
        rest = asyncio.all_tasks() - {asyncio.current_task()}
        for task in rest:
            task.cancel()
        await asyncio.gather(*rest, return_exceptions=True)
        for _ in range(10):
            await asyncio.sleep(0)

    def connect(self, timeout: float = 20) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=timeout)

    def _recall(self, entry: AuthRequest) -> Caller | None:
        credential = find_credential(entry.headers, entry.query)
        if credential is None or credential.token != self.tokens.get(entry.host.agent_id or ""):
            return None
        return Caller(CallerKind.GATEWAY, "acme", entry.host.agent_id, token_digest=token_digest(credential.token))

    async def _admit(self, entry: AuthRequest) -> Caller:
        if find_credential(entry.headers, entry.query) is None:
            raise MissingCredential
        if (caller := self._recall(entry)) is None:
            raise Unauthorised
        return caller

    async def _dial(self, agent_id: str, port: int | None) -> Any:
        self.dials += 1
        if self.dial is not None:
            return await self.dial(agent_id)
        name = agent_id if port is None else f"{agent_id}:{port}"
        if name not in self.upstreams:
            raise DialRefused
        return await asyncio.open_connection(*self.upstreams[name], limit=1 << 20)

    def _find_route(self, agent_id: str, path: bytes) -> PathRoute | None:
        return find_route(self.routes.get(agent_id, ()), path)

    def _subscribe_routes(self, listener: Callable[[str], None]) -> None:
        self.route_listener = listener

    async def _credential(self, _agent_id: str) -> tuple[str, Sensitive[str]]:
        return "Authorization", Sensitive(INTERNAL)

    def _subscribe(self, listener: Callable[[str], None]) -> None:
        self.listener = listener

    def gate(self, limits: ProxyLimits, **more: Any) -> ProxyDependencies:
        return ProxyDependencies(
            addresses=HostAddresses("localhost", self.port),
            recall=self._recall,
            admit=self._admit,
            find_route=self._find_route,
            dial=self._dial,
            credential=self._credential,
            record_use=self.uses.append,
            subscribe=self._subscribe,
            subscribe_routes=self._subscribe_routes,
            observe=self.records.append,
            cache=self.cache,
            limits=limits,
            **more,
        )


@contextlib.contextmanager
def running_edge(
    limits: ProxyLimits | None = None,
    *,
    app: Any = hello_app,
    loop_factory: Any = uvloop.new_event_loop,
    make: type[EdgeServer] = EdgeServer,
    **more: Any,
) -> Iterator[EdgeServer]:
    listening = socket.create_server(("127.0.0.1", 0))
    edge = make(port=listening.getsockname()[1])
    protocol = edge.protocol = edge_protocol(edge.gate(limits or ProxyLimits(), **more))
    config = uvicorn.Config(
        app,
        http=protocol,
        ws="websockets-sansio",
        log_config=None,
        server_header=False,
        timeout_graceful_shutdown=1,
    )
    server = uvicorn.Server(config)
    edge.create_protocol = lambda: protocol(config, server.server_state, {})

    async def serve() -> None:
        edge.loop = asyncio.get_running_loop()
        await server.serve(sockets=[listening])
        protocol.pool.close()
        await edge.clear()

    def run() -> None:
        with asyncio.Runner(loop_factory=loop_factory) as runner:
            runner.run(serve())

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    eventually(lambda: server.started)
    try:
        yield edge
    finally:
        server.should_exit = True
        thread.join(20)
        assert not thread.is_alive()


def eventually(condition: Callable[[], Any], seconds: float = 10.0) -> Any:
    """The condition's value once it is true; fails after the deadline."""
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < deadline, "the condition did not come true"
        time.sleep(0.01)
    return value


async def read_request(reader: asyncio.StreamReader) -> tuple[str, list[tuple[str, str]], bytes]:
    """What a gateway is sent: request line, headers, body."""
    line, *lines = (await reader.readuntil(b"\r\n\r\n"))[:-4].decode("latin-1").split("\r\n")
    headers = [(name, value.strip()) for name, _, value in (each.partition(":") for each in lines)]
    named = {name.lower(): value for name, value in headers}
    body = b""
    if named.get("transfer-encoding") == "chunked":
        while size := int(await reader.readuntil(b"\r\n"), 16):
            body += (await reader.readexactly(size + 2))[:-2]
        await reader.readexactly(2)
    elif "content-length" in named:
        body = await reader.readexactly(int(named["content-length"]))
    return line, headers, body


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """A gateway that answers with what it was asked, on a connection that stays open."""
    with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
        while True:
            line, headers, body = await read_request(reader)
            told = json.dumps({"line": line, "headers": headers, "body": body.decode("latin-1")}).encode()
            head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(told)
            writer.write(head if line.startswith("HEAD ") else head + told)
    writer.close()


def scripted(*answers: bytes, close: bool = False) -> Handler:
    """A gateway that answers each request of a connection with the next of `answers`, whatever it is."""

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            for answer in answers:
                await read_request(reader)
                writer.write(answer)
                await writer.drain()
            if not close:
                await reader.read()
        writer.close()

    return handler


def request(target: str = "/", *, method: str = "GET", host: str, headers: str = "", token: str = TOKEN) -> bytes:
    return f"{method} {target} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\n{headers}\r\n".encode()


@dataclass
class Reply:
    status: int
    headers: list[tuple[str, str]]
    body: bytes

    def __getitem__(self, name: str) -> str | None:
        return next((value for key, value in self.headers if key == name.lower()), None)

    def all(self, name: str) -> list[str]:
        return [value for key, value in self.headers if key == name.lower()]


class Wire:
    """One raw client connection that reads answers strictly."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.buffer = b""

    def send(self, data: bytes) -> None:
        self.sock.sendall(data)

    def push(self, data: bytes, most: int) -> int:
        """Send `data` again and again until it is not taken any more, or that was too much. How much was taken."""
        sent = 0
        try:
            while sent < most:
                sent += self.sock.send(data)
        except TimeoutError:
            return sent
        return sent

    def reply(self, *, head: bool = False) -> Reply:
        raw = self._until(b"\r\n\r\n")
        status_line, *lines = raw[:-4].decode("latin-1").split("\r\n")
        headers = [(key.lower(), value.strip()) for key, _, value in (line.partition(":") for line in lines)]
        reply = Reply(int(status_line.split()[1]), headers, b"")
        if head or reply.status in {204, 304} or reply.status < 200:
            return reply
        if reply["transfer-encoding"] == "chunked":
            while size := int(self._until(b"\r\n")[:-2], 16):
                reply.body += self._exactly(size + 2)[:-2]
            assert self._exactly(2) == b"\r\n"
        elif (length := reply["content-length"]) is not None:
            reply.body = self._exactly(int(length))
        else:
            reply.body = self.rest()
        return reply

    def rest(self) -> bytes:
        """All that comes until the connection ends."""
        data, self.buffer = self.buffer, b""
        while True:
            try:
                more = self.sock.recv(1 << 16)
            except ConnectionResetError:
                return data
            if not more:
                return data
            data += more

    def json(self) -> Any:
        """The body of an answer that has to be a good one."""
        reply = self.reply()
        assert reply.status == 200, reply
        return json.loads(reply.body)

    def error(self, status: int) -> str:
        """The message of an answer that has to be an error of ours."""
        reply = self.reply()
        assert reply.status == status, reply
        assert reply["content-type"] == "application/json"
        assert reply["x-request-id"]
        (message,) = json.loads(reply.body).values()
        return message

    def closed(self) -> bool:
        """Whether the other end has closed, with nothing more to read."""
        return self.rest() == b""

    def _until(self, mark: bytes) -> bytes:
        while mark not in self.buffer:
            self._more()
        at = self.buffer.index(mark) + len(mark)
        data, self.buffer = self.buffer[:at], self.buffer[at:]
        return data

    def _exactly(self, count: int) -> bytes:
        while len(self.buffer) < count:
            self._more()
        data, self.buffer = self.buffer[:count], self.buffer[count:]
        return data

    def _more(self) -> None:
        data = self.sock.recv(1 << 16)
        if not data:
            raise EOFError(self.buffer)
        self.buffer += data
