"""OpenAI-compatible endpoint for embeddings on loopback, whose vectors are those of the fake model, not of length 1."""

import json
import struct
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from roost.core.sensitive import Sensitive
from roost.drivers.embedding.fake import FakeEmbeddingModel

KEY = Sensitive("sk-embedding-0123456789abcdef")
MODEL = "words-128"


class EmbeddingServer:
    """`requests` are the bodies that it got; it gives `answers` first, then its own. It refuses what OpenAI refuses."""

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []
        self.answers: list[Response] = []
        self._model = FakeEmbeddingModel()
        self._app = Starlette(routes=[Route("/v1/embeddings", self._embed, methods=["POST"])])

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await self._app(scope, receive, send)

    async def _embed(self, request: Request) -> Response:
        body = json.loads(await request.body())
        self.requests.append(body)
        if request.headers.get("authorization") != f"Bearer {KEY.reveal()}":
            return JSONResponse({"error": {"message": "Incorrect API key provided"}}, 401)
        if self.answers:
            return self.answers.pop(0)
        if body["model"] != MODEL or not all(isinstance(text, str) and text for text in body["input"]):
            return JSONResponse({"error": {"message": "'$.input' is invalid"}}, 400)
        return vectors_response([unpack(vector, 7.5) for vector in await self._model.embed_texts(body["input"])])


def vectors_response(vectors: list[Any], **headers: str) -> Response:
    """Return an answer with vectors, the last one first, as the protocol allows."""
    data = [{"object": "embedding", "index": number, "embedding": vector} for number, vector in enumerate(vectors)]
    return JSONResponse({"object": "list", "data": data[::-1], "model": MODEL}, headers=headers)


def unpack(vector: bytes, factor: float = 1.0) -> list[float]:
    return [number * factor for number in struct.unpack(f"<{len(vector) // 4}f", vector)]
