"""Any OpenAI-compatible endpoint: requests and answers go through as they are, within bounds."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from fnmatch import fnmatchcase

import httpx2

from roost.drivers.model import json_access
from roost.drivers.model.chat import ChatRequest
from roost.drivers.model.contract import Json, ModelSettings, ModelUpstream
from roost.drivers.model.remote import IDLE, ProviderEndpointClient

_MOST_MODELS = 5_000
_LONGEST_ID = 200


class OpenAIUpstream(ModelUpstream):
    def __init__(
        self, settings: ModelSettings, *, idle: float = IDLE, transport: httpx2.AsyncBaseTransport | None = None
    ) -> None:
        """`transport` carries all requests, where the network that the process sees is not to be used."""
        super().__init__(settings.name)
        self._settings = settings
        key = {} if settings.key is None else {"Authorization": f"Bearer {settings.key.reveal()}"}
        self._remote = ProviderEndpointClient(settings, key, idle=idle, transport=transport)

    async def models(self) -> Sequence[str]:
        return self._settings.models or listed(await self._remote.get("/models"), self._settings.prefer)

    async def complete(self, request: ChatRequest) -> Json:
        answer = await self._remote.post("/chat/completions", request.body(stream=False))
        if not json_access.items(answer.get("choices")):
            raise self._remote.unclear()
        return answer

    async def stream(self, request: ChatRequest) -> AsyncGenerator[Json, None]:
        finished = False
        async with aclosing(self._remote.events("/chat/completions", request.body(stream=True))) as chunks:
            async for chunk in chunks:
                if chunk.get("error"):
                    raise self._remote.broken(chunk["error"])
                finished = finished or _finishes(chunk)
                yield chunk
        if not finished:
            raise self._remote.cut()

    async def close(self) -> None:
        await self._remote.close()


def listed(answer: Json, prefer: Sequence[str]) -> Sequence[str]:
    """The ids of a list of models, the preferred first; both protocols write it the same."""
    found = (
        json_access.string(json_access.obj(entry).get("id"))
        for entry in json_access.items(answer.get("data"))[:_MOST_MODELS]
    )
    models = [model for model in found if 0 < len(model) <= _LONGEST_ID]
    return sorted(models, key=lambda model: _place(model, prefer))


def _place(model: str, prefer: Sequence[str]) -> int:
    return next((place for place, pattern in enumerate(prefer) if fnmatchcase(model, pattern)), len(prefer))


def _finishes(chunk: Json) -> bool:
    return any(json_access.obj(choice).get("finish_reason") for choice in json_access.items(chunk.get("choices")))
