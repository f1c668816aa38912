"""What Telegram, Slack and Discord answer about tokens, on loopback: each knows the tokens that it is told."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

TELEGRAM_BOT = "123456789:AAExampleTokenOfThirtyFiveLetters00"
SLACK_BOT, SLACK_APP = "xoxb-1-2-abcdefghijklmnop", "xapp-1-A1-2-abcdefghijklmnop"
DISCORD_BOT = "MTIzNDU2Nzg5MDEyMzQ1Njc4.abcdef.ghijklmnopqrstuvwxyz012345"


@dataclass
class FakeTokenApi:
    """`known` are the tokens that count; `trouble` is a status that is answered instead; `raw` instead of any JSON."""

    url: str = ""
    known: set[str] = field(default_factory=lambda: {TELEGRAM_BOT, SLACK_BOT, SLACK_APP, DISCORD_BOT})
    trouble: int | None = None
    raw: bytes | None = None
    error: str = "invalid_auth"
    asked: list[str] = field(default_factory=list)

    def answer(self, path: str, bearer: str) -> tuple[int, object]:
        if self.trouble is not None:
            return self.trouble, {"ok": False, "description": "trouble", "message": "trouble"}
        if path.startswith("/bot"):
            token = path.removeprefix("/bot").removesuffix("/getMe")
            if token in self.known:
                return 200, {"ok": True, "result": {"id": 1, "is_bot": True, "username": "weather_bot"}}
            return 401, {"ok": False, "error_code": 401, "description": f"Unauthorized: {token}"}
        known = bearer.partition(" ")[2] in self.known
        if path == "/users/@me":
            return (200, {"id": "1", "username": "Weather"}) if known else (401, {"message": "401: Unauthorized"})
        return 200, {"ok": True, "user": "weather"} if known else {"ok": False, "error": self.error}


@contextmanager
def platforms() -> Iterator[FakeTokenApi]:
    api = FakeTokenApi()

    class Handler(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            api.asked.append(self.path)
            status, body = api.answer(self.path, self.headers.get("Authorization", ""))
            content = json.dumps(body).encode() if api.raw is None else api.raw
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = _answer  # noqa: N815 - the base's names

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base's name
            """Nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        api.url = f"http://127.0.0.1:{server.server_port}"
        try:
            yield api
        finally:
            server.shutdown()
            thread.join()
