"""The gateway of the fake engine: `python3 gateway.py SETTINGS`. Runs in a container; standard library only.

It serves the API of an engine's gateway (health, models, chat through the model gateway, a WebSocket), and paths that
test a proxy in front of it. The agent's name can make the start fail: `fail-start` exits with 3, `never-ready` does not
listen. A broken version damages its state and exits with 3.
"""

import base64
import hashlib
import hmac
import json
import os
import runpy
import signal
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
import uuid
from collections import defaultdict
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

_WEBSOCKET_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"  # RFC 6455, section 1.3
_BLOCK = 65536


class FakeDirectMessages:
    """The people who wrote to a bot: requests of strangers, who is approved, and when the last message came."""

    def __init__(self) -> None:
        self._requests: list[dict[str, Any]] = []
        self._approved: set[str] = set()
        self._last_message_at: int | None = None

    def state(self) -> dict[str, Any]:
        return {"requests": self._requests, "lastMessageAtMs": self._last_message_at}

    def receive(self, channel: dict[str, Any], sender: str, name: str) -> None:
        now = int(time.time() * 1000)
        if channel["dm_policy"] == "open" or sender in {*channel["allow_from"], *self._approved}:
            self._last_message_at = now
        elif all(one["sender"] != sender for one in self._requests):
            self._requests.append({"id": uuid.uuid4().hex, "sender": sender, "name": name, "ts": now})

    def approve(self, request_id: str) -> bool:
        found = [one for one in self._requests if one["id"] == request_id]
        self._requests = [one for one in self._requests if one["id"] != request_id]
        self._approved |= {one["sender"] for one in found}
        return bool(found)


class FakeGatewayServer(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, settings: dict[str, Any]) -> None:
        super().__init__(("127.0.0.1", settings["port"]), FakeGatewayHandler)
        self.settings = settings
        self.chats = defaultdict[str, FakeDirectMessages](FakeDirectMessages)
        self.model = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        here = Path(__file__).parent
        self.admin_api = runpy.run_path(str(here / "admin_api.py"))["FakeAdminApi"](here, settings)
        self.tasks = runpy.run_path(str(here / "scheduler.py"))["FakeScheduler"](here / "tasks.json", self.ask_model)
        conversations = runpy.run_path(str(here / "conversations.py"))["FakeConversations"]
        self.conversations = conversations(here / "conversations.json", self.open_chat)

    def open_chat(self, chat: dict[str, Any]) -> Any:
        """Send a chat to the model gateway and return its response. Raises URLError."""
        url = f"{self.settings['model_url']}/chat/completions"
        content = json.dumps({**chat, "model": self.settings["model"]}).encode()
        return self.model.open(urllib.request.Request(url, content, {"Content-Type": "application/json"}), timeout=60)  # noqa: S310 - the URL is ours

    def ask_model(self, text: str) -> str:
        with self.open_chat({"messages": [{"role": "user", "content": text}]}) as response:
            return json.load(response)["choices"][0]["message"]["content"]


class FakeGatewayHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: FakeGatewayServer  # pyright: ignore[reportIncompatibleVariableOverride] - no other server creates it

    def handle_one_request(self) -> None:
        """Route requests of any method by path."""
        self.raw_requestline = self.rfile.readline(_BLOCK)
        if not self.raw_requestline:
            self.close_connection = True
        elif self.parse_request():
            self._route()
            self.wfile.flush()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name in the base class
        log_line(format % args)

    def _route(self) -> None:
        url = urllib.parse.urlsplit(self.path)
        if url.path == "/health":
            self._json({"status": "ok"})
            return
        expected = f"Bearer {self.server.settings['token']}"
        if not hmac.compare_digest(self.headers.get("Authorization", "").encode(), expected.encode()):
            self._json({"error": {"message": "Unauthorized"}}, 401)
            return
        routes: dict[str, Callable[[dict[str, str]], None]] = {
            "/health/detailed": lambda _: self._json({"version": self.server.settings["version"]}),
            "/v1/models": lambda _: self._json({"object": "list", "data": [{"id": "fake", "object": "model"}]}),
            "/v1/chat/completions": lambda _: self._chat(),
            "/channels": lambda _: self._channels(),
            "/channels/message": lambda _: self._receive_message(),
            "/channels/approve": lambda _: self._approve_request(),
            "/skills": lambda _: self._skills(),
            "/echo": lambda _: self._echo(),
            "/slow": self._slow,
            "/big": self._big,
            "/ws": lambda _: self._websocket(),
        }
        section = url.path.lstrip("/").partition("/")[0]
        if section in {"devices", "config"}:
            forwarded_for = self.headers.get("X-Forwarded-For")
            status, answer = self.server.admin_api.handle(self.command, url.path, self._body(), forwarded_for)
            self._json(answer, status)
            return
        if section == "tasks":
            status, answer = self.server.tasks.handle(self.command, url.path, self._body())
            self._json(answer, status)
            return
        if section == "conversations":
            self._conversation(url.path.rpartition("/")[2])
            return
        query = dict(urllib.parse.parse_qsl(url.query))
        routes.get(url.path, lambda _: self._json({"error": {"message": "Not found"}}, 404))(query)

    def _chat(self) -> None:
        try:
            with self.server.open_chat(json.loads(self._body())) as response:
                kind = response.headers.get_content_type()
                self._head(response.status, {"Content-Type": kind, "Transfer-Encoding": "chunked"})
                while block := response.read1(_BLOCK):
                    self._chunk(block)
                self._chunk(b"")
        except urllib.error.URLError as error:
            self._json({"error": {"message": f"The model gateway failed: {error.reason}"}}, 502)

    def _conversation(self, name: str) -> None:
        """List the conversations, or return one, or answer a message as server-sent events."""
        found = self.server.conversations
        if self.command == "GET":
            self._json(found.summaries() if name == "conversations" else found.history(name))
            return
        events = found.answer(name, json.loads(self._body())["text"])
        self.close_connection = True
        self._head(200, {"Content-Type": "text/event-stream"})
        try:
            for event in events:
                self._event(f"data: {json.dumps(event)}")
            self._event("event: end\ndata: {}")
        except urllib.error.URLError as error:
            self._event("data: " + json.dumps({"error": f"The model gateway failed: {error.reason}"}))
        except ConnectionError:
            events.close()  # the client has stopped the answer

    def _event(self, event: str) -> None:
        self.wfile.write(f"{event}\n\n".encode())
        self.wfile.flush()

    def _channels(self) -> None:
        """Answer with the states of the channels, after a PUT has replaced them."""
        if self.command == "PUT":
            channels: dict[str, Any] = json.loads(self._body())
            if _refused(channels):
                self._json({"error": {"message": "A channel was refused"}}, 500)
                return
            self.server.settings["channels"] = channels
        channels = self.server.settings["channels"]
        states = {name: _channel_state(channel) | self.server.chats[name].state() for name, channel in channels.items()}
        self._json({"channels": states})

    def _receive_message(self) -> None:
        """Do what a bot does with a message, given its channel, sender and name."""
        message: dict[str, Any] = json.loads(self._body())
        channel = self.server.settings["channels"][message["channel"]]
        self.server.chats[message["channel"]].receive(channel, message["sender"], message["name"])
        self._json({})

    def _approve_request(self) -> None:
        body: dict[str, Any] = json.loads(self._body())
        is_found = self.server.chats[body["channel"]].approve(body["requestId"])
        self._json({}, 200 if is_found else 404)

    def _skills(self) -> None:
        """Answer with the skills of the workspace, in which the gateway runs."""
        found = [path for path in Path("skills").glob("*/SKILL.md") if path.is_file()]
        names = [path.parent.name for path in found if path.read_bytes().startswith(b"---\n")]
        self._json({"skills": sorted(names)})

    def _echo(self) -> None:
        body = self._body().decode(errors="replace")
        headers = [[name, value] for name, value in self.headers.items()]
        self._json({"method": self.command, "path": self.path, "headers": headers, "body": body})

    def _slow(self, query: dict[str, str]) -> None:
        """Send `count` chunks, one every `every` seconds."""
        self._head(200, {"Content-Type": "text/plain", "Transfer-Encoding": "chunked"})
        for number in range(int(query.get("count", "3"))):
            time.sleep(float(query.get("every", "0.2")))
            self._chunk(f"{number}\n".encode())
        self._chunk(b"")

    def _big(self, query: dict[str, str]) -> None:
        left = int(query.get("n", "1048576"))
        self._head(200, {"Content-Length": str(left)})
        while left > 0:
            left -= self.wfile.write(bytes(min(left, _BLOCK)))

    def _websocket(self) -> None:
        """Echo text and binary messages of one frame: the part of RFC 6455 that a conforming client needs."""
        key = self.headers.get("Sec-WebSocket-Key", "").encode()
        accept = base64.b64encode(hashlib.sha1(key + _WEBSOCKET_GUID).digest()).decode()  # noqa: S324 - RFC 6455 requires SHA-1
        self._head(101, {"Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Accept": accept})
        self.wfile.flush()
        self.close_connection = True
        while (frame := self._frame()) is not None:
            opcode, payload = frame
            reply = {8: 8, 9: 10}.get(opcode, opcode)
            self.wfile.write(bytes([0x80 | reply]) + _length(len(payload)) + payload)
            self.wfile.flush()
            if opcode == 8:
                return

    def _frame(self) -> tuple[int, bytes] | None:
        head = self.rfile.read(2)
        if len(head) < 2:
            return None
        size = head[1] & 0x7F
        if size >= 126:
            size = int.from_bytes(self.rfile.read(2 if size == 126 else 8), "big")
        mask = self.rfile.read(4)
        masked = self.rfile.read(size)
        return head[0] & 0x0F, bytes(byte ^ mask[index % 4] for index, byte in enumerate(masked))

    def _body(self) -> bytes:
        return self.rfile.read(int(self.headers.get("Content-Length", "0")))

    def _json(self, value: object, status: int = 200) -> None:
        body = json.dumps(value).encode()
        self._head(status, {"Content-Type": "application/json", "Content-Length": str(len(body))})
        self.wfile.write(body)

    def _head(self, status: int, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()

    def _chunk(self, block: bytes) -> None:
        self.wfile.write(f"{len(block):x}\r\n".encode() + block + b"\r\n")
        self.wfile.flush()


def _refused(channels: dict[str, Any]) -> bool:
    return any("refused" in str(channel["token"]) for channel in channels.values())


def _channel_state(channel: dict[str, Any]) -> dict[str, Any]:
    """Return a channel without its tokens. Its error quotes one, as errors of real engines do."""
    shown = {name: value for name, value in channel.items() if not name.endswith("token")}
    error = f"fetch of /bot{channel['token']}/getMe failed" if "unwell" in str(channel["token"]) else None
    if error:
        log_line(error)
    return shown | {"error": error}


def log_line(line: str) -> None:
    """Write a line unbuffered, because the signal handler also writes, possibly in the middle of another line."""
    os.write(2, f"{line}\n".encode())


def _length(size: int) -> bytes:
    if size < 126:
        return bytes([size])
    return bytes([126]) + size.to_bytes(2, "big") if size < 65536 else bytes([127]) + size.to_bytes(8, "big")


def _stop(_signal: int, _frame: object) -> None:
    log_line("fake gateway stops")
    sys.exit(0)


def main() -> None:
    signal.signal(signal.SIGTERM, _stop)
    settings: dict[str, Any] = json.loads(Path(sys.argv[1]).read_text())
    log_line(f"fake gateway {settings['version']} starts")
    if settings.get("broken"):
        Path(sys.argv[1]).with_name("memory").write_text("spoiled")
        sys.exit(3)
    if settings["name"] == "fail-start":
        log_line("fake gateway was told to fail")
        sys.exit(3)
    if settings.get("workers", 1) == 0:
        log_line("fake gateway has no workers")
        sys.exit(3)
    if _refused(settings["channels"]):
        log_line("fake gateway refuses a channel")
        sys.exit(3)
    while settings["name"] == "never-ready":
        signal.pause()
    with FakeGatewayServer(settings) as gateway:
        log_line("fake gateway listens")
        gateway.serve_forever()


if __name__ == "__main__":
    main()
