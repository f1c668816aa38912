"""A model server on loopback that answers as Ollama does to the requests that Roost makes."""

import json
from collections.abc import AsyncIterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

MODEL = "qwen3:8b"


class Ollama:
    """`questions` has the last message of each chat."""

    def __init__(self) -> None:
        self.questions: list[str] = []
        self.app = Starlette(
            routes=[
                Route("/v1/models", self._list),
                Route("/v1/chat/completions", self._chat, methods=["POST"]),
            ]
        )

    async def _list(self, _: Request) -> Response:
        rows = [
            {"id": name, "object": "model", "created": 1763900000, "owned_by": "library"}
            for name in (MODEL, "no\nname", "nomic-embed-text:latest")
        ]
        return JSONResponse({"object": "list", "data": rows})

    async def _chat(self, request: Request) -> Response:
        body = await request.json()
        if body["model"] != MODEL:
            return JSONResponse({"error": {"message": f"model '{body['model']}' not found"}}, 404)
        self.questions.append(body["messages"][-1]["content"])
        answer = f"Ollama heard: {self.questions[-1]}"
        if body.get("stream"):
            return StreamingResponse(_stream(answer), media_type="text/event-stream")
        message = {"role": "assistant", "content": answer}
        return JSONResponse(_chunk(choices=[{"index": 0, "message": message, "finish_reason": "stop"}]))


async def _stream(answer: str) -> AsyncIterator[str]:
    for word in answer.split(" "):
        yield _event({"index": 0, "delta": {"role": "assistant", "content": f"{word} "}, "finish_reason": None})
    yield _event({"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": "stop"})
    yield "data: [DONE]\n\n"


def _event(choice: Mapping[str, Any]) -> str:
    return f"data: {json.dumps(_chunk(choices=[choice]))}\n\n"


def _chunk(**more: Any) -> dict[str, Any]:
    return {"id": "chatcmpl-7", "object": "chat.completion.chunk", "created": 1763900000, "model": MODEL, **more}


def port_of(url: str) -> int:
    return urlsplit(url).port or 0
