"""A stub of the model gateway: OpenAI-compatible, answers every chat with one word.

A command of the scripted model in a user's message (`/tool`, `/say`, `/slow`) is obeyed in a streamed answer; after
`/cut` the first answer ends in the middle.
"""

import asyncio
import json
from typing import Any

from roost.drivers.model.chat import ChatRequest
from roost.drivers.model.scripted import MODEL, ScriptedUpstream, plan_reply

ANSWER = "pong"
BROKEN = "the broken heron"
_STREAM_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
MODELS = ("stand-in", "stand-in-2")


class ModelServer:
    """Server that records the bodies of chat requests in `chats`."""

    def __init__(self) -> None:
        self.chats: list[dict[str, Any]] = []
        self.is_cut = False

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            lines = head.split("\r\n")
            lengths = [int(line.split(":")[1]) for line in lines if line.lower().startswith("content-length:")]
            body = await reader.readexactly(lengths[0] if lengths else 0)
            if self._cuts_off(body):
                writer.write(_STREAM_HEAD + _event(json.loads(body), BROKEN))
                await writer.drain()
                return
            if (scripted := _parse_scripted(body)) is not None:
                self.chats.append(json.loads(body))
                await _stream_scripted(scripted, writer)
                return
            writer.write(self._answer(lines[0].split()[1], body))
            await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            return  # a probe closed the connection
        finally:
            writer.close()

    def _cuts_off(self, body: bytes) -> bool:
        """Return whether to cut off this answer: the first one after a message with `/cut`."""
        request = json.loads(body or b"{}")
        if not request.get("stream") or "/cut" not in json.dumps(request["messages"][-2:]):
            return False
        self.is_cut = not self.is_cut
        return self.is_cut

    def _answer(self, path: str, body: bytes) -> bytes:
        if path.endswith("/v1/models"):
            return _response({"object": "list", "data": [{"id": name, "object": "model"} for name in MODELS]})
        if path.rpartition("/")[2] in MODELS:
            return _response({"id": path.rpartition("/")[2], "object": "model"})
        if not path.endswith("/v1/chat/completions"):
            return _response({"error": {"message": "not found"}}, "404 Not Found")
        request = json.loads(body)
        self.chats.append(request)
        if not request.get("stream"):
            message = {"role": "assistant", "content": ANSWER}
            return _response({**_chunk("chat.completion", request), "choices": [_choice("message", message, "stop")]})
        first = _choice("delta", {"role": "assistant", "content": ANSWER}, None)
        parts = [first, _choice("delta", {}, "stop")]
        events = [json.dumps({**_chunk("chat.completion.chunk", request), "choices": [part]}) for part in parts]
        stream = "".join(f"data: {event}\n\n" for event in [*events, "[DONE]"])
        return _STREAM_HEAD + stream.encode()


def _parse_scripted(body: bytes) -> ChatRequest | None:
    """Return a request with a command or its result in the scripted model's name; None for any other."""
    request = json.loads(body or b"{}")
    if not request.get("stream"):
        return None
    chat = ChatRequest.model_validate({**request, "model": MODEL})
    return None if "You said" in plan_reply(chat).text else chat


async def _stream_scripted(chat: ChatRequest, writer: asyncio.StreamWriter) -> None:
    writer.write(_STREAM_HEAD)
    async for chunk in ScriptedUpstream().stream(chat):
        writer.write(f"data: {json.dumps({**chunk, 'model': MODELS[0]})}\n\n".encode())
        await writer.drain()
    writer.write(b"data: [DONE]\n\n")


def _event(request: dict[str, Any], text: str) -> bytes:
    choice = _choice("delta", {"role": "assistant", "content": text}, None)
    event = json.dumps({**_chunk("chat.completion.chunk", request), "choices": [choice]})
    return f"data: {event}\n\n".encode()


def _chunk(kind: str, request: dict[str, Any]) -> dict[str, Any]:
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    return {"id": "c1", "object": kind, "created": 1, "model": request.get("model"), "usage": usage}


def _choice(key: str, content: dict[str, Any], finish: str | None) -> dict[str, Any]:
    return {"index": 0, key: content, "finish_reason": finish}


def _response(value: object, status: str = "200 OK") -> bytes:
    body = json.dumps(value).encode()
    head = [f"HTTP/1.1 {status}", "Content-Type: application/json", f"Content-Length: {len(body)}", "Connection: close"]
    return "\r\n".join([*head, "", ""]).encode() + body
