"""Embedding models behind OpenAI-compatible endpoints (`POST {url}/embeddings`).

Redirects are not followed, because they would forward the key. The operator's proxy and certificate variables apply,
except to an endpoint on the loopback interface.
"""

import asyncio
import math
import re
import struct
from collections.abc import Sequence
from typing import Any, NoReturn

import httpx2

from roost.core import log
from roost.core.machine.network_advice import describe_network_error
from roost.drivers.embedding.contract import EmbeddingFailed, EmbeddingModel, EmbeddingSettings, EmbeddingUnavailable
from roost.drivers.model.json_access import as_count, as_list, as_object, parse_json
from roost.net.guarded_transport import is_loopback_url

_log = log.get_logger("embedding_model")
_BATCH_TEXTS = 32
_MAX_TEXT_LENGTH = 4096
"""Characters of a text that are sent; models refuse texts of more than some thousand tokens."""
_MAX_DIMENSION = 8192
_MAX_ANSWER_BYTES = 32 * 1024**2
_MAX_ERROR_BYTES, _MAX_REASON_LENGTH = 64 * 1024, 300
_TIMEOUT = httpx2.Timeout(60.0, connect=10.0)
_TOTAL_SECONDS = 120.0
_LIMITS = httpx2.Limits(max_connections=8)
_PAUSES = (0.5, 2.0, 8.0)
"""Seconds before further attempts, unless the server asks for more, up to the limit below."""
_MAX_PAUSE_SECONDS = 20.0
_DENIED = (401, 402, 403)
_TEMPORARY = (408, 429)


class OpenAIEmbeddingModel(EmbeddingModel):
    def __init__(self, settings: EmbeddingSettings) -> None:
        self._settings = settings
        self._dimension: int | None = None
        self._client: httpx2.AsyncClient | None = None

    @property
    def model_id(self) -> str:
        return self._settings.model

    async def embed_texts(self, texts: Sequence[str]) -> Sequence[bytes]:
        vectors: list[bytes] = []
        for start in range(0, len(texts), _BATCH_TEXTS):
            vectors += await self._embed_batch([_clean_text(text) for text in texts[start : start + _BATCH_TEXTS]])
        return vectors

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    async def _embed_batch(self, texts: Sequence[str]) -> Sequence[bytes]:
        body = {"model": self._settings.model, "input": texts, "encoding_format": "float"}
        for pause in (*_PAUSES, None):
            try:
                async with asyncio.timeout(_TOTAL_SECONDS):
                    return self._parse_vectors(await self._request(body), len(texts))
            except (TimeoutError, _TemporaryFailure) as error:
                failure = error if isinstance(error, _TemporaryFailure) else _TemporaryFailure("no answer in time")
            _log.warning("embedding.attempt_failed", reason=failure.reason)
            if pause is not None:
                await asyncio.sleep(min(max(pause, failure.retry_after), _MAX_PAUSE_SECONDS))
        raise EmbeddingUnavailable(retry_after=_MAX_PAUSE_SECONDS)

    async def _request(self, body: dict[str, Any]) -> bytes:
        """Return the body of a successful answer. Raises _TemporaryFailure and the errors of the contract."""
        try:
            async with self._open_client().stream("POST", "/embeddings", json=body) as response:
                if not response.is_success:
                    await self._raise_refusal(response)
                return await _read_body(response, _MAX_ANSWER_BYTES)
        except httpx2.RequestError as error:
            raise _TemporaryFailure(describe_network_error(error)) from None

    async def _raise_refusal(self, response: httpx2.Response) -> NoReturn:
        status = response.status_code
        if status in _TEMPORARY or status >= 500:
            raise _TemporaryFailure(f"HTTP {status}", _retry_after(response))
        reason = self._redact((await _read_body(response, _MAX_ERROR_BYTES, whole=False)).decode(errors="replace"))
        _log.error("embedding.request_refused", status=status, reason=reason)
        if status in _DENIED:
            raise EmbeddingUnavailable("The embedding model does not accept the configured key or account")
        raise EmbeddingFailed(f"The embedding model refused the texts with status {status}")

    def _open_client(self) -> httpx2.AsyncClient:
        if self._client is None:
            key = self._settings.key
            credential = {} if key is None else {"Authorization": f"Bearer {key.reveal()}"}
            self._client = httpx2.AsyncClient(
                base_url=self._settings.url,
                headers={"User-Agent": "roost", "Accept-Encoding": "identity", **credential},
                timeout=_TIMEOUT,
                limits=_LIMITS,
                trust_env=not is_loopback_url(self._settings.url),
            )
        return self._client

    def _parse_vectors(self, content: bytes, count: int) -> Sequence[bytes]:
        """Return the vectors of an answer in the order of the texts. Raises EmbeddingFailed."""
        data = as_list(as_object(parse_json(content)).get("data"))
        vectors: dict[int, bytes] = {}
        for place, entry in enumerate(as_object(entry) for entry in data[: count + 1]):
            vector = _pack_unit_vector(as_list(entry.get("embedding")))
            vectors[as_count(entry.get("index", place))] = vector
            self._dimension = self._dimension or len(vector)
            if len(vector) != self._dimension:
                raise _malformed("its vectors have different dimensions")
        if len(data) != count or vectors.keys() != set(range(count)):
            raise _malformed(f"it has {len(data)} vectors for {count} texts")
        return [vectors[place] for place in range(count)]

    def _redact(self, text: str) -> str:
        if self._settings.key is not None and (key := self._settings.key.reveal()):
            text = text.replace(key, "[redacted]")
        return log.redact_credentials(text)[:_MAX_REASON_LENGTH]


class _TemporaryFailure(Exception):  # noqa: N818 - a reason to try again
    def __init__(self, reason: str, retry_after: float = 0.0) -> None:
        self.reason = reason
        self.retry_after = retry_after
        super().__init__(reason)


def _clean_text(text: str) -> str:
    """Return a text that endpoints accept: with a character, without lone surrogates, and not too long."""
    return text[:_MAX_TEXT_LENGTH].encode(errors="replace").decode() or " "


def _pack_unit_vector(numbers: Sequence[Any]) -> bytes:
    if not 0 < len(numbers) <= _MAX_DIMENSION or not all(type(number) in (int, float) for number in numbers):
        raise _malformed(f"a vector is not a list of 1 to {_MAX_DIMENSION:,} numbers")
    try:
        length = math.hypot(*numbers)
    except OverflowError:  # an integer beyond float
        length = math.inf
    if not math.isfinite(length) or length == 0:
        raise _malformed("a vector has no finite length")
    return struct.pack(f"<{len(numbers)}f", *(number / length for number in numbers))


def _malformed(reason: str) -> EmbeddingFailed:
    return EmbeddingFailed(f"The answer of the embedding model is malformed: {reason}")


async def _read_body(response: httpx2.Response, max_bytes: int, *, whole: bool = True) -> bytes:
    """Return the body. One that is longer raises EmbeddingFailed, or is cut off unless the `whole` is needed."""
    content = bytearray()
    async for piece in response.aiter_bytes():
        content += piece
        if len(content) > max_bytes:
            if whole:
                raise _malformed(f"it has more than {max_bytes:,} bytes")
            break
    return bytes(content[:max_bytes])


def _retry_after(response: httpx2.Response) -> float:
    value = response.headers.get("retry-after", "")
    return float(value) if re.fullmatch(r"[0-9]{1,9}", value) else 0.0
