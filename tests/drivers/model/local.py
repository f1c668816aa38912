"""Model providers on loopback: small, independent speakers of both protocols, and a raw server for bad manners."""

import asyncio
import contextlib
import json
import re
import socket
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from roost.core.sensitive import Sensitive

KEY = Sensitive("sk-secret-0123456789abcdef")
MODEL = "parrot"


async def until(condition: Callable[[], object], seconds: float = 10.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "this never came true"
        await asyncio.sleep(0.005)


@asynccontextmanager
async def serving(app: Any) -> AsyncIterator[str]:
    """The address of an ASGI application, served by the real server; at the end all its requests have to end."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = uvicorn.Server(uvicorn.Config(app, interface="asgi3", lifespan="off", ws="none", log_config=None))
        server.config.load()
        server.lifespan = server.config.lifespan_class(server.config)
        await server.startup(sockets=[listener])
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            for acceptor in server.servers:
                acceptor.close()
            for connection in list(server.server_state.connections):
                connection.transport.abort()
            await until(lambda: not server.server_state.tasks)


@asynccontextmanager
async def raw(answer: bytes, *, hold: bool = False) -> AsyncIterator[str]:
    """The address of a server that reads a request's head and sends `answer`; it hangs up, or holds the line."""

    async def attend(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, EOFError):
            await reader.readuntil(b"\r\n\r\n")
            writer.write(answer)
            await writer.drain()
            if hold:
                await reader.read(-1)
        writer.close()

    server = await asyncio.start_server(attend, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()


def sse(*data: str) -> bytes:
    """The bytes of a whole answer, up to the end of the connection, of server-sent events."""
    events = "".join(f"data: {line}\n\n" for line in data)
    return f"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n{events}".encode()


class Provider(ABC):
    """What the two speakers share: what they saw, and what they say.

    `refusal` is answered to everything, where it is set. `/hang` in a text makes a stream stand still after its
    beginning; `hanging` and `left` count those.
    """

    def __init__(self) -> None:
        self.bodies: list[dict[str, Any]] = []
        self.headers: dict[str, str] = {}
        self.refusal: Response | None = None
        self.hanging = 0
        self.left = 0

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await self.app(scope, receive, send)

    @property
    @abstractmethod
    def app(self) -> Starlette: ...

    async def seen(self, request: Request) -> dict[str, Any]:
        self.headers = dict(request.headers)
        self.bodies.append(json.loads(await request.body()))
        return self.bodies[-1]

    async def hang(self) -> None:
        self.hanging += 1
        try:
            await asyncio.Event().wait()
        finally:
            self.left += 1


def scripted_answer(text: str, tools: list[str]) -> str | tuple[str, str]:
    """What is answered to a text: words, or the name and arguments of a tool."""
    if (found := re.search(r"/tool (\S+) (\{.*\})", text)) and found[1] in tools:
        return found[1], found[2]
    if found := re.search(r"/say (.*)", text):
        return found[1]
    return f"parrot says: {text}"


class OpenAIProvider(Provider):
    @property
    def app(self) -> Starlette:
        return Starlette(
            routes=[
                Route("/v1/models", self.models),
                Route("/v1/chat/completions", self.chat, methods=["POST"]),
                Route("/v1/responses", self.responses, methods=["POST"]),
                Route("/v1/embeddings", self.embeddings, methods=["POST"]),
            ]
        )

    async def models(self, _request: Request) -> Response:
        return self.refusal or JSONResponse({"object": "list", "data": [{"id": MODEL, "object": "model"}]})

    async def embeddings(self, request: Request) -> Response:
        body = await self.seen(request)
        data = [{"object": "embedding", "index": 0, "embedding": [0.5, float(len(body["input"]))]}]
        usage = {"prompt_tokens": 5, "total_tokens": 5}
        return self.refusal or JSONResponse({"object": "list", "model": MODEL, "data": data, "usage": usage})

    async def responses(self, request: Request) -> Response:
        body = await self.seen(request)
        if self.refusal is not None:
            return self.refusal
        whole = self._response(body["input"])
        if not body.get("stream"):
            return JSONResponse(whole)
        return StreamingResponse(self._response_events(whole, body), media_type="text/event-stream")

    def _response(self, text: str) -> dict[str, Any]:
        failed = "/fail" in text
        error = {"code": "server_error", "message": f"the key {KEY.reveal()} is tired"} if failed else None
        content = [{"type": "output_text", "text": scripted_answer(text, [])}]
        return {
            "id": "resp_1",
            "object": "response",
            "status": "failed" if failed else "completed",
            "error": error,
            "output": [{"type": "message", "role": "assistant", "content": content}],
            "usage": {"input_tokens": 11, "output_tokens": 7, "total_tokens": 18},
        }

    async def _response_events(self, whole: dict[str, Any], body: dict[str, Any]) -> AsyncIterator[str]:
        begun = {**whole, "status": "in_progress", "output": [], "usage": None, "error": None}
        yield _event({"type": "response.created", "sequence_number": 0, "response": begun})
        yield _event({"type": "response.output_text.delta", "sequence_number": 1, "delta": "some words"})
        if "/hang" in body["input"]:
            await self.hang()
        if "/break" in body["input"]:
            yield _event({"type": "error", "code": "server_error", "message": f"not with {KEY.reveal()}"})
        elif "/cut" not in body["input"]:
            yield _event({"type": f"response.{whole['status']}", "sequence_number": 2, "response": whole})

    async def chat(self, request: Request) -> Response:
        body = await self.seen(request)
        if self.refusal is not None:
            return self.refusal
        if body["model"] != MODEL:
            return JSONResponse({"error": {"message": "no such model", "code": "model_not_found"}}, 404)
        last = body["messages"][-1]
        text = last["content"] if isinstance(last["content"], str) else last["content"][-1]["text"]
        answer = f"result: {text}" if last["role"] == "tool" else scripted_answer(text, self._tools(body))
        if not body.get("stream"):
            return JSONResponse(self._completion(answer))
        return StreamingResponse(self._events(answer, body), media_type="text/event-stream")

    async def _events(self, answer: str | tuple[str, str], body: dict[str, Any]) -> AsyncIterator[str]:
        usage = (body.get("stream_options") or {}).get("include_usage")
        for chunk in self._chunks(answer):
            yield f"data: {json.dumps(chunk | ({'usage': None} if usage else {}))}\n\n"
            if "/hang" in str(body["messages"]):
                await self.hang()
        if usage:
            yield f"data: {json.dumps(self._chunk() | {'choices': [], 'usage': self._usage()})}\n\n"
        yield "data: [DONE]\n\n"

    def _chunks(self, answer: str | tuple[str, str]) -> Iterator[dict[str, Any]]:
        yield self._chunk({"role": "assistant", "content": ""})
        if isinstance(answer, str):
            for word in re.findall(r"\S+\s*|\s+", answer):
                yield self._chunk({"content": word})
        else:
            yield self._chunk({"tool_calls": [{"index": 0, **self._call(answer[0], "")}]})
            for part in (answer[1][:3], answer[1][3:]):
                yield self._chunk({"tool_calls": [{"index": 0, "function": {"arguments": part}}]})
        yield self._chunk({}, "stop" if isinstance(answer, str) else "tool_calls")

    def _chunk(self, delta: dict[str, Any] | None = None, finish: str | None = None) -> dict[str, Any]:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": MODEL, "choices": [choice]}

    def _completion(self, answer: str | tuple[str, str]) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": answer if isinstance(answer, str) else None}
        if isinstance(answer, tuple):
            message["tool_calls"] = [self._call(*answer)]
        finish = "stop" if isinstance(answer, str) else "tool_calls"
        head = {"id": "c1", "object": "chat.completion", "created": 1, "model": MODEL}
        return head | {
            "choices": [{"index": 0, "message": message, "finish_reason": finish}],
            "usage": self._usage(),
            "x_extra": "kept",
        }

    def _call(self, name: str, arguments: str) -> dict[str, Any]:
        return {"id": "call_1", "type": "function", "function": {"name": name, "arguments": arguments}}

    def _usage(self) -> dict[str, int]:
        return {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}

    def _tools(self, body: dict[str, Any]) -> list[str]:
        return [tool["function"]["name"] for tool in body.get("tools", [])]


def _event(value: dict[str, Any]) -> str:
    return f"event: {value['type']}\ndata: {json.dumps(value)}\n\n"


class AnthropicProvider(Provider):
    """Refuses what the real one refuses: a wrong version or key, no limit, turns that do not alternate, empty text."""

    @property
    def app(self) -> Starlette:
        return Starlette(
            routes=[Route("/v1/models", self.models), Route("/v1/messages", self.messages, methods=["POST"])]
        )

    async def models(self, _request: Request) -> Response:
        return self.refusal or JSONResponse({"data": [{"type": "model", "id": MODEL}], "has_more": False})

    async def messages(self, request: Request) -> Response:
        body = await self.seen(request)
        if self.refusal is not None:
            return self.refusal
        if fault := self._fault(request, body):
            error = {"type": fault[1], "message": fault[2]}
            return JSONResponse({"type": "error", "error": error}, fault[0])
        block = body["messages"][-1]["content"][-1]
        if block["type"] == "tool_result":
            answer: str | tuple[str, str] = f"result: {block['content'][0]['text']}"
        else:
            answer = scripted_answer(block["text"], [tool["name"] for tool in body.get("tools", [])])
        if not body.get("stream"):
            return JSONResponse(self._message(answer))
        return StreamingResponse(self._events(answer, body), media_type="text/event-stream")

    def _fault(self, request: Request, body: dict[str, Any]) -> tuple[int, str, str] | None:
        if request.headers.get("x-api-key") != KEY.reveal():
            return 401, "authentication_error", "invalid x-api-key"
        if body["model"] != MODEL:
            return 404, "not_found_error", f"model: {body['model']}"
        roles = [message["role"] for message in body["messages"]]
        if roles != ["user", "assistant"] * (len(roles) // 2) + ["user"]:
            return 400, "invalid_request_error", f"turns: {roles}"
        if request.headers.get("anthropic-version") != "2023-06-01" or not isinstance(body.get("max_tokens"), int):
            return 400, "invalid_request_error", "version, max_tokens"
        return None

    def _message(self, answer: str | tuple[str, str]) -> dict[str, Any]:
        if isinstance(answer, str):
            content: dict[str, Any] = {"type": "text", "text": answer}
        else:
            content = {"type": "tool_use", "id": "toolu_1", "name": answer[0], "input": json.loads(answer[1])}
        return {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": MODEL,
            "content": [content],
            "stop_reason": "end_turn" if isinstance(answer, str) else "tool_use",
            "usage": {"input_tokens": 9, "cache_read_input_tokens": 2, "output_tokens": 7},
        }

    async def _events(self, answer: str | tuple[str, str], body: dict[str, Any]) -> AsyncIterator[str]:
        for event in self._sequence(answer):
            yield f"event: {event['type']}\ndata: {json.dumps(event)}\n\n"
            if event["type"] == "content_block_start" and "/hang" in str(body["messages"]):
                await self.hang()

    def _sequence(self, answer: str | tuple[str, str]) -> Iterator[dict[str, Any]]:
        whole = self._message(answer)
        start = whole | {"content": [], "stop_reason": None, "usage": whole["usage"] | {"output_tokens": 1}}
        yield {"type": "message_start", "message": start}
        yield {"type": "ping"}
        block = whole["content"][0]
        if isinstance(answer, str):
            yield {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
            for word in re.findall(r"\S+\s*|\s+", answer):
                yield {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": word}}
        else:
            yield {"type": "content_block_start", "index": 0, "content_block": block | {"input": {}}}
            for part in ("", answer[1][:3], answer[1][3:]):
                delta = {"type": "input_json_delta", "partial_json": part}
                yield {"type": "content_block_delta", "index": 0, "delta": delta}
        yield {"type": "content_block_stop", "index": 0}
        yield {"type": "message_delta", "delta": {"stop_reason": whole["stop_reason"]}, "usage": {"output_tokens": 7}}
        yield {"type": "message_stop"}
